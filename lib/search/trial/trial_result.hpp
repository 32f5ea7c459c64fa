// What a trial's command and folder say after the command has ended, and whose fault its end is.
//
//   the trial's      it diverged, its own settings are wrong, its program fails: it counts as the worst
//   the machine's    no space on a disk, no memory beside other trials, a bad node, a signal from outside, damaged
//                    data: another trial would end the same way, so nothing is decided
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"
#include "run/metrics.hpp"
#include "search/space/space.hpp"

namespace lockstep {

struct TrialEnd {
  enum class Kind : std::uint8_t {
    reached,    // the rung: `metric` is the result there
    stopped,    // by somebody else: the same command continues
    failed,     // by the trial's fault; a restart from the checkpoint may help
    ended,      // by the trial's fault; a restart would fail again
    no_memory,  // of other trials, or too large: the trial must run alone to tell
    killed,     // a restart may help; perhaps there was no memory
    bad_place,  // by the machine's fault; a restart may help
    prevented,  // by the machine's fault; a restart would fail again
  };
  Kind kind = Kind::failed;
  double metric = 0;
  int code = 0;             // of failures
  std::string reason = {};  // of failures: a sentence, printable
};

// Of a trial's exit code: other codes of another program have no meaning here.
Failure failure_of_code(int code);

// The metric in a line of metrics.jsonl. Nothing if the line has none, or belongs to another split. NaN if a custom
// training loop has reported a value that is not finite. `is_of_ema`: the summary's `keeps_ema`.
std::optional<double> metric_in(const SearchMetric& metric, const NumberedLine& line, bool is_of_ema);

inline bool has_failed(const TrialEnd& end) {
  return end.kind != TrialEnd::Kind::reached && end.kind != TrialEnd::Kind::stopped;
}

// The space's metric at each step at which a trial was tested; nothing if it was not finite. Reads untrusted files and
// does not throw because of them.
std::map<std::int64_t, std::optional<double>> metrics_by_step(const Space& space, const std::filesystem::path& folder);

// `launcher_code` is that of the trial's command, `exit_report` the file that LOCKSTEP_VERDICT named for it, and
// `last_lines` what it printed last, at most lines_for_text_cause. Reads untrusted files and does not throw because of
// them.
TrialEnd trial_end(const Space& space, const std::filesystem::path& folder, std::int64_t steps, int launcher_code,
                   const std::filesystem::path& exit_report, std::span<const std::string> last_lines);

}  // namespace lockstep
