#include "search/search_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text/counted.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "search/space/setting_text.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t widest_setting = 24;  // such as that of a path
constexpr std::int64_t most_listed = 50;    // trials

std::string cut(std::string text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  std::size_t end = bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not within a character
  return text.substr(0, end) + "...";
}

// What the trials of a search have in common; empty if nothing.
std::string constants_text(const Space& space) {
  std::vector<OptionWord> words;
  for (const Hyperparameter& parameter : space.hyperparameters) {
    if (is_constant(parameter) && !parameter.words.front().empty()) words.push_back(parameter.words.front());
  }
  if (words.empty()) return "";
  return "\n" + cut_line("all trials: " + printable(fmt::format("{}", fmt::join(words, " "))));
}

// The settings of the first trials.
std::string trials_text(const Space& space) {
  if (varied_parameters(space).empty()) return "";
  TextColumn numbers{"trial", {}};
  std::vector<std::vector<OptionWord>> settings;
  for (std::int64_t trial = 1; trial <= std::min(space.searcher.max_trials, most_listed); ++trial) {
    numbers.cells.push_back(std::to_string(trial));
    settings.push_back(trial_settings(space, trial));
  }
  std::vector<TextColumn> columns = setting_columns(space, settings);
  columns.insert(columns.begin(), numbers);
  std::string text = "\n" + table_text(columns);
  if (space.searcher.max_trials > most_listed) {
    text += fmt::format("\n  and {} more", space.searcher.max_trials - most_listed);
  }
  return text;
}

// 25, 0.5, 3.33
std::string epochs_text(double epochs) { return number_text(std::round(epochs * 100) / 100); }

double bracket_cost(const Bracket& bracket, double divisor) {
  const std::vector<std::int64_t> trials = expected_trials(bracket, divisor);
  double cost = 0;
  for (std::size_t rung = 0; rung < trials.size(); ++rung) {
    const std::int64_t before = rung == 0 ? 0 : bracket.lengths[rung - 1];
    cost += static_cast<double>(trials[rung]) * static_cast<double>(bracket.lengths[rung] - before);
  }
  return cost;
}

// The rule of a searcher with rungs, one sentence a line.
std::string rung_rule(const SearcherOptions& options) {
  if (options.kind == SearcherKind::successive_halving) {
    return fmt::format(
        "When all trials of a rung have a result, the best 1/{} of them continue to\n"
        "the next rung, at least one. Results are compared by trial number, not by\n"
        "arrival, so concurrency changes no decision.\n",
        number_text(options.divisor));
  }
  if (options.promotion == Promotion::stop_once) {
    return fmt::format(
        "At a rung, a trial continues at once if it is among the best 1/{} of the\n"
        "results so far. Otherwise it ends for good.\n",
        number_text(options.divisor));
  }
  return fmt::format(
      "When a trial is among the best 1/{} of the results of its rung so far, it\n"
      "continues to the next rung. Others wait: a later result may promote them.\n"
      "If none can be promoted, a new trial starts. Nothing waits for a whole rung.\n",
      number_text(options.divisor));
}

}  // namespace

std::string cut_line(std::string line) { return cut(std::move(line), terminal_width); }

std::vector<TextColumn> setting_columns(const Space& space, const std::vector<std::vector<OptionWord>>& trials) {
  std::vector<TextColumn> columns;
  for (const Hyperparameter* const parameter : varied_parameters(space)) {
    TextColumn& column = columns.emplace_back(TextColumn{printable(parameter->option), {}});
    for (const std::vector<OptionWord>& settings : trials) {
      column.cells.push_back(cut(printable(short_setting_text(settings, *parameter)), widest_setting));
    }
  }
  return columns;
}

std::string table_text(const std::vector<TextColumn>& columns) {
  std::vector<std::string> lines = text_table(columns, terminal_width);
  for (std::string& line : lines) line = cut_line(line);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const std::size_t value = word.starts_with("--") ? word.find('=') : std::string::npos;
    const bool is_plain = value == std::string::npos ? is_plain_word(word)
                                                     : is_plain_word(std::string_view(word).substr(0, value)) &&
                                                           is_plain_word(std::string_view(word).substr(value + 1));
    line += (line.empty() ? "" : " ") + (is_plain ? word : shell_word(word));
  }
  return line;
}

const char* cost_unit(const Space& space) { return space.has_custom_loop() ? "batches" : "epochs"; }

std::string metric_text(const Space& space, double metric) {
  if (space.has_custom_loop()) return fmt::format("{:.6g}", metric);
  return space.metric.value == TestMetric::accuracy ? fmt::format("{:.2f} %", metric * 100)
                                                    : fmt::format("{:.4f}", metric);
}

bool are_final(const Space& space, const std::map<std::int64_t, TrialRecord>& trials) {
  return space.searcher.promotion == Promotion::stop_once || are_over(trials);
}

const char* resting_state(const Space& space, const TrialRecord& trial, bool is_final) {
  if (trial.metric && trial.length == space.searcher.max_length) return "complete";
  return is_final ? "ended early" : "waiting";
}

std::string plan_text(const Space& space, double units_per_epoch) {
  const SearcherOptions& options = space.searcher;
  std::string text = cut_line(fmt::format("searcher: {}, {} of {}", choice_name(searcher_kinds, options.kind),
                                          counted(options.max_trials, "trial"), printable(space.program)));
  text += fmt::format("\nmetric: {}, {} is better\n\nbracket  rung  {:>12}  trials\n", metric_name(space.metric),
                      space.smaller_is_better ? "smaller" : "larger", choice_name(length_units, space.unit));
  double cost = 0;
  const std::vector<Bracket> brackets = brackets_of(options);
  for (std::size_t bracket = 0; bracket < brackets.size(); ++bracket) {
    const std::vector<std::int64_t> trials = expected_trials(brackets[bracket], options.divisor);
    for (std::size_t rung = 0; rung < trials.size(); ++rung) {
      text += fmt::format("{:>7}  {:>4}  {:>12}  {:>6}\n", bracket + 1, rung + 1, brackets[bracket].lengths[rung],
                          trials[rung]);
    }
    cost += bracket_cost(brackets[bracket], options.divisor);
  }
  const double all = static_cast<double>(options.max_trials) * static_cast<double>(options.max_length);
  text += has_rungs(options.kind)
              ? fmt::format("\ncost: about {} {}, instead of {} for all trials in full\n",
                            epochs_text(cost / units_per_epoch), cost_unit(space), epochs_text(all / units_per_epoch))
              : fmt::format("\ncost: {}{} {}\n", options.kind == SearcherKind::custom ? "at most " : "",
                            epochs_text(all / units_per_epoch), cost_unit(space));
  if (options.kind == SearcherKind::custom) {
    return text + "\n" +
           cut_line(fmt::format("settings: by '{}'", printable(fmt::format("{}", fmt::join(space.command, " ")))));
  }
  return text + constants_text(space) + trials_text(space);
}

std::string description_text(const Space& space) {
  const SearcherOptions& options = space.searcher;
  const std::string unit = choice_name(length_units, space.unit);
  if (options.kind == SearcherKind::custom) {
    return fmt::format(
        "A program chooses the settings of at most {}. After each result, it\nlets the trial continue, up to {}, or "
        "stops it (apps/search.md).",
        counted(options.max_trials, "trial"), length_text(options.max_length, space.unit));
  }
  if (!has_rungs(options.kind)) {
    return fmt::format("Each of {} is trained for {}. No trial ends early.", counted(options.max_trials, "trial"),
                       length_text(options.max_length, space.unit));
  }
  std::string text;
  for (const Bracket& bracket : brackets_of(options)) {
    text += cut_line(fmt::format("{}: judged after {} {}.", counted(bracket.trials, "trial"),
                                 fmt::join(bracket.lengths, ", "), unit)) +
            "\n";
  }
  text += rung_rule(options);
  if (space.has_custom_loop()) return text + "A trial that fails counts as the worst.";
  return text +
         "Learning rates follow the schedule of the whole training from the start. A\n"
         "trial that fails counts as the worst.";
}

std::string table_header(const Space& space) {
  return fmt::format("trial  rung      steps  {:>19}  then", metric_name(space.metric));
}

std::string table_row(const Space& space, const Order& order, const TrialRecord& trial,
                      const std::vector<Order>& decisions) {
  std::vector<std::string> next;
  for (const Order& one : decisions) {
    next.push_back(one.rung == 0 ? fmt::format("starts {}", one.trial)
                                 : fmt::format("promotes {} to rung {}", one.trial, one.rung + 1));
  }
  const std::string result =
      trial.code != 0 ? fmt::format("failed ({})", trial.code) : metric_text(space, *trial.metric);
  return cut_line(fmt::format("{:>5}  {:>4}  {:>9}  {:>19}  {}", order.trial, order.rung + 1, trial.steps, result,
                              next.empty() ? "-" : fmt::format("{}", fmt::join(next, ", "))));
}

}  // namespace lockstep
