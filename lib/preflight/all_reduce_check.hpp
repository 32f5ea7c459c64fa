// Checks that all-reduces return correct sums, and finds the rank whose contribution is damaged.
#pragma once

#include <cstddef>
#include <optional>

#include "comm/all_reducer.hpp"
#include "device/device.hpp"

namespace lockstep {

// Element `at` of `count` that a rank contributes to the all-reduce. Each rank owns a range of elements, in which it
// contributes a larger whole number; elsewhere it contributes 1. All sums are whole numbers that fp32 represents
// exactly.
float checked_contribution(int rank, int ranks, std::size_t at, std::size_t count);

// Collective. All-reduces `values`, an fp32 tensor of the reducer, over `ranks` and overwrites them. Returns the rank
// that owns the first wrong element on this rank; nullopt if all are correct.
std::optional<int> find_wrong_contributor(Device& device, AllReducer& reducer, const Tensor& values, int rank,
                                          int ranks);

}  // namespace lockstep
