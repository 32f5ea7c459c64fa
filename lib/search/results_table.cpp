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
  return resting_state(space, trial, is_final);
}

}  // namespace

std::string results_table(const Space& space, const std::map<std::int64_t, TrialRecord>& trials, std::size_t most) {
  TextColumn number{"trial", {}};
  const bool has_brackets = brackets_of(space.searcher).size() > 1;  // whose rungs differ in length
  TextColumn reached{has_brackets ? choice_name(length_units, space.unit) : "rung", {}};
  TextColumn metric{printable(metric_name(space.metric)), {}};
  TextColumn state{"state", {}, true};
  std::vector<std::vector<OptionWord>> settings;
  const std::vector<std::int64_t> ranked = ranked_trials(space, trials);
  const bool is_final = are_final(space, trials);
  for (const std::int64_t one : std::span(ranked).first(std::min(ranked.size(), most))) {
    const TrialRecord& trial = trials.at(one);
    number.cells.push_back(std::to_string(one));
    reached.cells.push_back(
        trial.metric ? fmt::format("{}", has_brackets ? trial.length : static_cast<std::int64_t>(trial.rung) + 1)
                     : "-");
    metric.cells.push_back(trial.metric ? metric_text(space, *trial.metric) : "-");
    state.cells.push_back(state_of(space, trial, is_final));
    settings.push_back(trial.settings);
  }
  std::vector<TextColumn> columns{number, reached, metric, state};
  std::ranges::move(setting_columns(space, settings), std::back_inserter(columns));
  std::string text = table_text(columns);
  if (ranked.size() > most) text += fmt::format("\n  and {} more", ranked.size() - most);
  return text;
}

}  // namespace lockstep
