// Work that one rank does for all, and whose failure is everyone's.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.hpp"

namespace lockstep {

// Collective. What `work` returns on rank 0, which alone does it. What it throws there as Error all ranks throw.
std::string from_rank_0(const Communicator& world, const std::function<std::string()>& work);

// The same of work without a result.
void on_rank_0(const Communicator& world, const std::function<void()>& work);

// Collective, in two parts: an Error of `work`, as text, empty where there is none; and on every rank the Error that
// the text of rank 0 tells.
std::string caught_failure(const std::function<void()>& work);
void throw_failure_of_rank_0(const Communicator& world, std::string failure);

}  // namespace lockstep
