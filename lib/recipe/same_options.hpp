// Compares the options of a training over the ranks of a job: launchers can give each rank a command line of its own.
#pragma once

#include "comm/communicator.hpp"
#include "recipe/run_plan.hpp"

namespace lockstep {

// Collective. All fields but those that may differ (Field::on_ranks). Throws as require_same_on_ranks().
void require_same_options(const Communicator& world, const Settings& settings);

}  // namespace lockstep
