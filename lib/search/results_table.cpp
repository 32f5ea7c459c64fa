#include "search/results_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "search/search_text.hpp"
#include "search/setting_text.hpp"

namespace lockstep {

namespace {

std::string state_of(const Space& space, const TrialRecord& trial, bool is_final) {
  if (trial.code != 0) return fmt::format("failed ({})", trial.code);
  if (trial.ahead) return fmt::format("to rung {}", *trial.ahead + 1);
  if (trial.length == space.searcher.max_length) return "in full";
  return is_final ? "judged" : "waiting";
}

// Numbers with four digits.
std::vector<OptionWord> shortened(const Space& space, std::vector<OptionWord> settings) {
  for (const Hyperparameter& parameter : space.hyperparameters) {
    const std::string flag = "--" + parameter.option + "=";
    const auto word = std::ranges::find_if(settings, [&](const OptionWord& one) { return one.starts_with(flag); });
    if (word != settings.end()) *word = flag + short_setting_text(settings, parameter);
  }
  return settings;
}

}  // namespace

std::string results_table(const Space& space, const std::map<std::int64_t, TrialRecord>& trials, std::size_t most) {
  std::string text = fmt::format("trial  bracket  rung  {:>19}  {:<11}  settings", metric_name(space.metric), "state");
  const std::vector<std::int64_t> ranked = ranked_trials(space, trials);
  const bool is_final = space.searcher.promotion == Promotion::stop_once || are_over(trials);
  for (const std::int64_t number : std::span(ranked).first(std::min(ranked.size(), most))) {
    const TrialRecord& trial = trials.at(number);
    text +=
        "\n" + cut_line(fmt::format("{:>5}  {:>7}  {:>4}  {:>19}  {:<11}  {}", number, trial.bracket + 1,
                                    trial.metric ? std::to_string(trial.rung + 1) : "-",
                                    trial.metric ? metric_text(space, *trial.metric) : "-",
                                    state_of(space, trial, is_final), settings_text(shortened(space, trial.settings))));
  }
  if (ranked.size() > most) text += fmt::format("\n  and {} more", ranked.size() - most);
  return text;
}

}  // namespace lockstep
