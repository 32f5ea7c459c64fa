// Work that rank 0 does for all ranks. If it fails, all ranks fail.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.hpp"

namespace lockstep {

// Collective. Runs `work` on rank 0 only, and returns its result on all ranks. If it throws an Error, all ranks throw
// it.
std::string from_rank_0(const Communicator& world, const std::function<std::string()>& work);

// The same for work without a result.
void on_rank_0(const Communicator& world, const std::function<void()>& work);

// The same in two steps. caught_failure() runs `work` and returns its Error as text, or an empty text; not collective.
// throw_failure_of_rank_0() is collective: every rank throws the Error in rank 0's text, if there is one.
std::string caught_failure(const std::function<void()>& work);
void throw_failure_of_rank_0(const Communicator& world, std::string failure);

}  // namespace lockstep
