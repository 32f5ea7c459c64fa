// What of a search's file may change between two calls: fields that no decision depends on.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "search/space/schedule.hpp"

namespace lockstep {

// The first field in which two contents of space files differ, such as "searcher.divisor"; empty if there is none.
// Leaves out `name`, `description`, `max_restarts`, `save_*`, and the searcher's `max_concurrent_trials`.
std::string difference_in_spaces(const nlohmann::json& recorded, const nlohmann::json& now);

// The options with the number of trials that the searcher created first, as `recorded` has it. Decisions depend on it;
// how many trials run at once may change.
SearcherOptions with_recorded_concurrency(SearcherOptions options, const nlohmann::json& recorded);

}  // namespace lockstep
