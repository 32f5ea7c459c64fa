#include "search/trial/trial_result.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <ranges>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/printable.hpp"
#include "run/exit_report.hpp"
#include "run/metrics.hpp"
#include "run/run_file.hpp"
#include "run/summary.hpp"
#include "runtime/stop/process_signals.hpp"
#include "slurm/retry/attempt_facts.hpp"
#include "slurm/retry/text_cause.hpp"

namespace lockstep {
namespace {

// Errors of a machine, whose system message is in the sentence of a failure. Their exit codes are those of any failure.
constexpr std::array machine_errors = std::to_array<int>({ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, EIO, ESTALE, EROFS});

bool names_machine_error(std::string_view text) {
  return std::ranges::any_of(machine_errors, [&](int error_number) {
    return text.find(": " + system_error_message(error_number)) != std::string_view::npos;
  });
}

TrialEnd::Kind kind_of(Cause cause) {
  switch (cause) {
    case Cause::stopped_early:
    case Cause::terminated:
      return TrialEnd::Kind::stopped;
    case Cause::usage:
    case Cause::diverged:
    case Cause::arithmetic_error:
      return TrialEnd::Kind::ended;
    case Cause::out_of_memory:
      return TrialEnd::Kind::no_memory;
    case Cause::killed:
      return TrialEnd::Kind::killed;
    case Cause::bad_node:
    case Cause::node_failure:
    case Cause::resource_conflict:
      return TrialEnd::Kind::bad_place;
    case Cause::disk_full:
    case Cause::bad_data:
    case Cause::bus_error:
    case Cause::illegal_instruction:
    case Cause::no_program:
    case Cause::import_error:
    case Cause::driver_too_old:
      return TrialEnd::Kind::prevented;
    default:
      return TrialEnd::Kind::failed;
  }
}

MetricsLine::Kind kind_of(const SearchMetric& metric) {
  return metric.split == Split::test ? MetricsLine::Kind::test : MetricsLine::Kind::validation;
}

// What a program wrote last, if not yet a whole line.
bool ends_within_line(const std::filesystem::path& folder) {
  const std::optional<RegularFile> file = open_run_file(folder / run_files::metrics);
  return file && file->bytes() > 0 && read_at(*file, file->bytes() - 1, 1) != "\n";
}

TrialEnd result_in(const Space& space, const std::filesystem::path& folder, std::int64_t steps) {
  const std::map<std::int64_t, std::optional<double>> metrics = metrics_by_step(space, folder);
  const auto found = metrics.find(steps);
  TrialEnd end{TrialEnd::Kind::ended, 0, static_cast<int>(Failure::other), ""};
  if (found == metrics.end()) {
    end.reason = fmt::format("'metrics.jsonl' has no {} after step {}", metric_name(space.metric), steps);
    if (ends_within_line(folder)) end.reason += ". The last line of the file has no newline at its end";
  } else if (!found->second) {
    end.code = static_cast<int>(Failure::diverged);
    end.reason = fmt::format("its {} after step {} is not finite", metric_name(space.metric), steps);
  } else {
    end = {TrialEnd::Kind::reached, *found->second};
  }
  return end;
}

// Exit codes of shells.
constexpr int signal_base = 128;
constexpr int most_signals = 64;
// Their sentences do not say which signal it was.
constexpr std::array ends_by_signals{Cause::killed, Cause::terminated, Cause::crashed};

// Of a program without an exit report: ". Its output ends: ValueError: x". Empty if it printed no letter.
std::string last_words(std::span<const std::string> lines) {
  constexpr std::size_t most_bytes = 200;
  for (const std::string& line : lines | std::views::reverse) {
    const bool has_letter = std::ranges::any_of(line, [](unsigned char byte) { return std::isalpha(byte) != 0; });
    if (has_letter) return ". Its output ends: " + printable(line.substr(0, most_bytes));
  }
  return "";
}

// Python's json module writes NaN, Infinity and -Infinity, which JSON does not have. Empty if the line has none.
std::string with_nulls(std::string_view line) {
  std::string text(line);
  for (const std::string_view number : {"-Infinity", "Infinity", "NaN"}) {
    for (std::size_t at = text.find(number); at != std::string::npos; at = text.find(number)) {
      text.replace(at, number.size(), "null");
    }
  }
  return text == line ? "" : text;
}

}  // namespace

Failure failure_of_code(int code) {
  for (const Failure failure : {Failure::usage, Failure::bad_data, Failure::out_of_memory, Failure::bad_node,
                                Failure::out_of_step, Failure::diverged}) {
    if (static_cast<int>(failure) == code) return failure;
  }
  return Failure::other;
}

std::map<std::int64_t, std::optional<double>> metrics_by_step(const Space& space, const std::filesystem::path& folder) {
  const std::optional<Summary> summary = read_summary(folder);
  const bool is_of_ema = summary && summary->keeps_ema;
  std::map<std::int64_t, std::optional<double>> metrics;
  read_metrics(folder, [&](const NumberedLine& written) {
    const std::string standard = written.content || !space.has_custom_loop() ? "" : with_nulls(written.text);
    const NumberedLine line =
        standard.empty() ? written : NumberedLine{written.number, standard, parse_metrics_line(standard)};
    if (!line.content || line.content->kind != kind_of(space.metric)) return;
    const std::optional<double> metric = metric_in(space.metric, line, is_of_ema);
    if (!metric && space.has_custom_loop()) return;  // another metric's line
    metrics[line.content->step] = metric && std::isfinite(*metric) ? metric : std::nullopt;
  });
  return metrics;
}

std::optional<double> metric_in(const SearchMetric& metric, const NumberedLine& line, bool is_of_ema) {
  if (!line.content || line.content->kind != kind_of(metric)) return std::nullopt;
  if (!metric.name.empty()) return reported_metric(line.text, metric.name);
  const MetricsLine& values = *line.content;
  if (metric.value == TestMetric::loss) return is_of_ema ? values.ema_loss : values.loss;
  return is_of_ema ? values.ema_accuracy : values.accuracy;
}

TrialEnd trial_end(const Space& space, const std::filesystem::path& folder, std::int64_t steps, int launcher_code,
                   const std::filesystem::path& exit_report, std::span<const std::string> last_lines) {
  if (launcher_code == 0) return result_in(space, folder, steps);
  AttemptFacts facts;
  facts.exit_report = read_exit_report(exit_report);
  facts.launcher_code = launcher_code;
  facts.log_tail = fmt::format("{}", fmt::join(last_lines, "\n"));
  std::string told;  // without an exit report, the line that shows the cause
  if (!facts.exit_report) {
    const auto line = std::ranges::find_if(last_lines, names_machine_error);
    const std::optional<TextCause> cause = find_text_cause(launcher_code, last_lines);
    if (cause) told = cause->line;
    if (line != last_lines.end()) told = *line;
    if (!told.empty()) facts.exit_report = ExitReport{launcher_code, 0, "", told, -1, {}, told};
  }
  const Finding finding = find_cause(facts, {});
  const bool is_general = finding.cause == Cause::failed || finding.cause == Cause::usage;
  TrialEnd end;
  end.code = finding.code;
  end.kind = is_general && facts.exit_report && names_machine_error(facts.exit_report->sentence)
                 ? TrialEnd::Kind::prevented
                 : kind_of(finding.cause);
  end.reason = printable(facts.exit_report && told.empty() ? facts.exit_report->sentence : finding.sentence);
  const int signal = launcher_code - signal_base;
  const bool is_by_signal = std::ranges::find(ends_by_signals, finding.cause) != ends_by_signals.end();
  if (!facts.exit_report && is_by_signal && signal > 0 && signal <= most_signals) {
    end.reason = fmt::format("the program was ended by {} (signal {})", signal_name(signal), signal);
  }
  if (!facts.exit_report && finding.cause == Cause::failed) end.reason += last_words(last_lines);
  return end;
}

}  // namespace lockstep
