#include "search/space/recorded_space.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

constexpr const char* concurrency = "max_concurrent_trials";
constexpr std::array free_fields = std::to_array<std::string_view>(
    {"/name", "/description", "/max_restarts", "/save_experiment_best", "/save_trial_best", "/save_trial_latest",
     "/searcher/max_concurrent_trials", "/searcher/answer_seconds"});

// Its values by path, such as "/searcher/divisor".
nlohmann::json values_of(const nlohmann::json& space) {
  nlohmann::json values = space.is_object() ? space.flatten() : nlohmann::json::object();
  for (const std::string_view field : free_fields) values.erase(std::string(field));
  return values;
}

}  // namespace

std::string difference_in_spaces(const nlohmann::json& recorded, const nlohmann::json& now) {
  const nlohmann::json before = values_of(recorded);
  const nlohmann::json after = values_of(now);
  for (const auto& [one, other] : {std::pair(&after, &before), std::pair(&before, &after)}) {
    for (const auto& [path, value] : one->items()) {
      if (const auto found = other->find(path); found != other->end() && *found == value) continue;
      std::string field = path.empty() ? "space" : path.substr(1);
      std::ranges::replace(field, '/', '.');
      return printable(field);
    }
  }
  return "";
}

SearcherOptions with_recorded_concurrency(SearcherOptions options, const nlohmann::json& recorded) {
  const auto searcher = recorded.find("searcher");
  const std::string text = searcher == recorded.end() ? "" : text_in(*searcher, concurrency);
  options.max_concurrent_trials =
      parse_number<std::int64_t>(text, {1, most_trials}).value_or(SearcherOptions().max_concurrent_trials);
  return options;
}

}  // namespace lockstep
