// Texts from each rank to each rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace lockstep {

// Collective. `messages`: one for each rank, also for this one, by rank. They may be empty. Returns the message of each
// rank to this one, by rank. A waiting rank sleeps between polls. Throws Error if the messages that a rank sends, or
// those that it gets, take more than 2 GiB.
std::vector<std::string> all_to_all(const Communicator& ranks, std::span<const std::string> messages);

}  // namespace lockstep
