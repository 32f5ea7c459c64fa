// Removes checkpoints that no trial needs any more.
#pragma once

#include <cstdint>
#include <map>

#include "search/journal/search_folder.hpp"
#include "search/space/space.hpp"
#include "search/trial/trial_record.hpp"

namespace lockstep {

struct RemovedCheckpoints {
  std::int64_t files = 0;
  std::int64_t bytes = 0;
};

// Call when the search has ended. Removes the checkpoints that the space's rule does not keep, of trials with a result.
// A file is removed only if it is an intact checkpoint of the trial: of the step in its name, up to that of the trial's
// last result, and with the recipe of the checkpoint of that result. Links and files of others stay, and nothing
// outside the trial's own folders is changed. Files that cannot be removed stay, with a warning.
RemovedCheckpoints remove_checkpoints(const Space& space, const SearchFolder& folder,
                                      const std::map<std::int64_t, TrialRecord>& trials);

}  // namespace lockstep
