// Whether all ranks still have the same weights: a rank that deviates trains a model of its own, and nothing else
// tells.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

// What a rank says of its weights and running statistics.
struct WeightsOnRank {
  std::string host;
  std::string hash;
};

// Collective. Waits for the device. Throws Error(out_of_step), on every rank alike, naming the ranks whose weights are
// not those of most; `step` (counted from 0) is the last one done.
void audit_weights(const Communicator& world, const ParameterStore& store, std::int64_t step);

// The sentence for that, by rank; empty where all are alike. Where no weights are those of most, all ranks are named.
std::string deviation_message(std::span<const WeightsOnRank> ranks, std::int64_t step);

}  // namespace lockstep
