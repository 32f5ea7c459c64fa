// What a search knows about a trial.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/space.hpp"

namespace lockstep {

struct TrialRecord {
  std::vector<OptionWord> settings;
  std::size_t rung = 0;          // of the last result, from 0
  std::int64_t steps = 0;        // of the last result; 0: none
  std::optional<double> metric;  // the last result
  std::int64_t restarts = 0;
  int code = 0;        // if it has failed
  std::string reason;  // if it has failed
};

// The last results decide. Of equal metrics, the trial with more steps is better, then the one with the lower number.
// Nothing if no trial has a result that stands.
std::optional<std::int64_t> best_trial(const Space& space, const std::map<std::int64_t, TrialRecord>& trials);

}  // namespace lockstep
