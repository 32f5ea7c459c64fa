#include "search/trial_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text/printable.hpp"
#include "run/exit_report.hpp"
#include "run/metrics.hpp"
#include "run/summary.hpp"

namespace lockstep {
namespace {

// Exit codes after which a restart would fail again (apps/README.md), and that of a command that cannot be started.
constexpr std::array final_codes =
    std::to_array<int>({static_cast<int>(Failure::usage), static_cast<int>(Failure::bad_data),
                        static_cast<int>(Failure::out_of_memory), static_cast<int>(Failure::diverged), 126, 127});

MetricsLine::Kind kind_of(const SearchMetric& metric) {
  return metric.split == Split::test ? MetricsLine::Kind::test : MetricsLine::Kind::validation;
}

TrialEnd result_in(const Space& space, const std::filesystem::path& folder, std::int64_t steps) {
  const std::optional<Summary> summary = read_summary(folder);
  const bool is_of_ema = summary && summary->keeps_ema;
  std::optional<MetricsLine> found;
  read_metrics(folder, [&](const NumberedLine& line) {
    if (line.content && line.content->kind == kind_of(space.metric) && line.content->step == steps) {
      found = line.content;
    }
  });
  TrialEnd end{TrialEnd::Kind::ended, 0, static_cast<int>(Failure::other), ""};
  if (!found) {
    end.reason = fmt::format("'metrics.jsonl' has no {} after step {}", metric_name(space.metric), steps);
    return end;
  }
  const std::optional<double> value = metric_in(space.metric, *found, is_of_ema);
  if (!value) {
    end.code = static_cast<int>(Failure::diverged);
    end.reason = fmt::format("its {} after step {} is not finite", metric_name(space.metric), steps);
    return end;
  }
  return {TrialEnd::Kind::reached, *value};
}

}  // namespace

std::optional<double> metric_in(const SearchMetric& metric, const MetricsLine& line, bool is_of_ema) {
  if (line.kind != kind_of(metric)) return std::nullopt;
  if (metric.value == TestMetric::loss) return is_of_ema ? line.ema_loss : line.loss;
  return is_of_ema ? line.ema_accuracy : line.accuracy;
}

TrialEnd trial_end(const Space& space, const std::filesystem::path& folder, std::int64_t steps, int launcher_code,
                   const std::filesystem::path& exit_report) {
  if (launcher_code == 0) return result_in(space, folder, steps);
  const std::optional<ExitReport> report = read_exit_report(exit_report);
  TrialEnd end;
  end.code = report ? report->code : launcher_code;
  end.reason = report ? printable(report->sentence) : fmt::format("its command ended with code {}", launcher_code);
  if (end.code == static_cast<int>(Failure::stopped_early)) {
    end.kind = TrialEnd::Kind::stopped;
  } else if (std::ranges::find(final_codes, end.code) != final_codes.end()) {
    end.kind = TrialEnd::Kind::ended;
  }
  return end;
}

}  // namespace lockstep
