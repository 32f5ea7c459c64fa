// What a search knows about a trial.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/space/space.hpp"

namespace lockstep {

struct TrialRecord {
  std::vector<OptionWord> settings;
  std::size_t bracket = 0;           // from 0
  std::size_t rung = 0;              // of the last result, from 0
  std::int64_t length = 0;           // of the last result, in the space's unit
  std::int64_t steps = 0;            // of the last result; 0: none
  std::optional<double> metric;      // the last result
  std::optional<std::size_t> ahead;  // the rung to which it is to be trained, from 0
  std::int64_t restarts = 0;
  int code = 0;        // if it has failed
  std::string reason;  // if it has failed
};

// Whether no trial is to be trained further.
bool are_over(const std::map<std::int64_t, TrialRecord>& trials);

// All trials, the best first. The last results decide. Of equal metrics, the trial with more steps is better, then the
// one with the lower number. Trials without a result follow, then failed ones. In custom training loops, trials with
// more steps are first, as their metrics may grow with the steps.
std::vector<std::int64_t> ranked_trials(const Space& space, const std::map<std::int64_t, TrialRecord>& trials);

// The first of them. Nothing if no trial has a result that stands.
std::optional<std::int64_t> best_trial(const Space& space, const std::map<std::int64_t, TrialRecord>& trials);

}  // namespace lockstep
