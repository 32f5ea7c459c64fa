// The results of a search as a table, in 80 columns.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "search/space/space.hpp"
#include "search/trial/trial_record.hpp"

namespace lockstep {

// A line for each trial, the best first: trial, rung of its last result, or its length if there are several brackets,
// metric, state, and the hyperparameters that vary. The state is "to rung 3", "failed (79)", or resting_state(). At
// most `most` trials; a last line then has the number of the others.
std::string results_table(const Space& space, const std::map<std::int64_t, TrialRecord>& trials, std::size_t most);

}  // namespace lockstep
