// The results of a search as a table, in 80 columns.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "search/space/space.hpp"
#include "search/trial/trial_record.hpp"

namespace lockstep {

// A line for each trial, the best first: trial, bracket if there are several, rung and length of its last result,
// metric, state, and the hyperparameters that vary. The state is "to rung 3", "complete", "failed (79)", or after an
// earlier rung "ended early", and "waiting" as long as a later result may promote the trial. At most `most` trials; a
// last line then has the number of the others.
std::string results_table(const Space& space, const std::map<std::int64_t, TrialRecord>& trials, std::size_t most);

}  // namespace lockstep
