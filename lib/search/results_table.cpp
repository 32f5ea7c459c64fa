#include "search/results_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/text/printable.hpp"
#include "search/search_text.hpp"

namespace lockstep {

namespace {

std::string state_of(const Space& space, const TrialRecord& trial, bool is_final) {
  if (trial.code != 0) return fmt::format("failed ({})", trial.code);
  if (trial.ahead) return fmt::format("to rung {}", *trial.ahead + 1);
  if (trial.length == space.searcher.max_length) return "complete";
  return is_final ? "ended early" : "waiting";
}

}  // namespace

std::string results_table(const Space& space, const std::map<std::int64_t, TrialRecord>& trials, std::size_t most) {
  TextColumn number{"trial", {}};
  TextColumn bracket{"bracket", {}};
  TextColumn rung{"rung", {}};
  TextColumn length{choice_name(length_units, space.unit), {}};
  TextColumn metric{printable(metric_name(space.metric)), {}};
  TextColumn state{"state", {}, true};
  std::vector<std::vector<OptionWord>> settings;
  const std::vector<std::int64_t> ranked = ranked_trials(space, trials);
  const bool is_final = space.searcher.promotion == Promotion::stop_once || are_over(trials);
  for (const std::int64_t one : std::span(ranked).first(std::min(ranked.size(), most))) {
    const TrialRecord& trial = trials.at(one);
    number.cells.push_back(std::to_string(one));
    bracket.cells.push_back(std::to_string(trial.bracket + 1));
    rung.cells.push_back(trial.metric ? std::to_string(trial.rung + 1) : "-");
    length.cells.push_back(trial.metric ? std::to_string(trial.length) : "-");
    metric.cells.push_back(trial.metric ? metric_text(space, *trial.metric) : "-");
    state.cells.push_back(state_of(space, trial, is_final));
    settings.push_back(trial.settings);
  }
  std::vector<TextColumn> columns{number};
  if (brackets_of(space.searcher).size() > 1) columns.push_back(bracket);
  columns.insert(columns.end(), {rung, length, metric, state});
  std::ranges::move(setting_columns(space, settings), std::back_inserter(columns));
  std::string text = table_text(columns);
  if (ranked.size() > most) text += fmt::format("\n  and {} more", ranked.size() - most);
  return text;
}

}  // namespace lockstep
