// Kernels that are chosen by measurement: the same ones on all ranks, and measured only once.
#pragma once

#include <functional>

#include "backend/session.hpp"
#include "runtime/plan_file.hpp"

namespace lockstep {

// Collective. If the device measures kernels, rank 0 calls `warm_up`, which computes everything once on noise, and
// broadcasts its choices, which are then binding. Choices in the session's plan folder are not measured again, and new
// ones are added to it. Returns where rank 0's choices came from; zero on other ranks.
PlanUse choose_kernels(const Session& session, const std::function<void()>& warm_up);

}  // namespace lockstep
