// LOCKSTEP_HOLD_ON_FAILURE: how long a job keeps its nodes after a failure, so that a user can look at them.
#pragma once

#include <string_view>

#include "slurm/retry/attempt_facts.hpp"

namespace lockstep {

// Seconds in "90s", "30min", "2h", or in a form of Slurm's --time: minutes, minutes:seconds, hours:minutes:seconds,
// days-hours, days-hours:minutes, days-hours:minutes:seconds. Throws Error(usage) for any other text, and for a time
// that is not from a second to 30 days.
double parse_hold(std::string_view text);

// Whether the program failed by itself, and may fail again. Nodes are not kept if a user or Slurm ended the attempt, or
// if the cause is transient.
bool is_worth_a_look(const Finding& finding);

}  // namespace lockstep
