// Audit: checks that all ranks still have the same weights. A deviating rank would train its own model unnoticed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

// A rank's hash of its weights and running statistics.
struct WeightsOnRank {
  std::string host;
  std::string hash;
};

// Collective. Waits for the device. `step` (counted from 0) is the last one done. If weights differ, throws
// Error(out_of_step) on every rank, naming the ranks that deviate from the majority.
void audit_weights(const Communicator& world, const ParameterStore& store, std::int64_t step);

// The message for deviating weights, by rank; empty if all are equal. If there is no majority, it names all ranks.
std::string deviation_message(std::span<const WeightsOnRank> ranks, std::int64_t step);

}  // namespace lockstep
