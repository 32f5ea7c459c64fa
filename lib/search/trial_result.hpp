// What a trial's folder says after its program has ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "run/metrics.hpp"
#include "search/space.hpp"

namespace lockstep {

struct TrialEnd {
  enum class Kind : std::uint8_t {
    reached,  // the rung: `metric` is the result there
    stopped,  // with a checkpoint; the same command continues
    failed,   // a restart from the checkpoint may help
    ended,    // failed, and a restart would fail again
  };
  Kind kind = Kind::failed;
  double metric = 0;
  int code = 0;             // of failures
  std::string reason = {};  // of failures: a sentence, printable
};

// The metric in a line of metrics.jsonl; nothing if the line has none, or is of another split. `is_of_ema`: the
// summary's `keeps_ema`.
std::optional<double> metric_in(const SearchMetric& metric, const MetricsLine& line, bool is_of_ema);

// `launcher_code` is that of the trial's command, `exit_report` the file that LOCKSTEP_VERDICT named for it. Reads
// untrusted files and does not throw because of them.
TrialEnd trial_end(const Space& space, const std::filesystem::path& folder, std::int64_t steps, int launcher_code,
                   const std::filesystem::path& exit_report);

}  // namespace lockstep
