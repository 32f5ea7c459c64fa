// Whether sums over ranks are right, and whose part is not.
#pragma once

#include <cstddef>
#include <optional>

#include "comm/all_reducer.hpp"
#include "device/device.hpp"

namespace lockstep {

// Value number `at` of `count` that a rank gives to the sum: 1, and in a stretch of its own, which nobody else has, a
// larger whole number. All sums are whole numbers that fp32 holds.
float part_of_checked_sum(int rank, int ranks, std::size_t at, std::size_t count);

// Collective. Sums `values`, fp32 of the reducer's, which are lost, over `ranks`. The rank whose stretch the first
// wrong value lies in, as it arrived here; nothing if all are right.
std::optional<int> find_wrong_part(Device& device, AllReducer& reducer, const Tensor& values, int rank, int ranks);

}  // namespace lockstep
