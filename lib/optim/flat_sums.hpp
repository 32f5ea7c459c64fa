// Sums over parts and ranks, on flat arrays: element by element, the same for any number of threads.
#pragma once

#include <cstdint>
#include <span>

#include "device/ops.hpp"
#include "optim/fixed_point.hpp"

namespace lockstep {

// How many of `values` are not smaller in size than `limit`, NaNs among them. Infinity: infinities and NaNs.
std::int64_t count_outside(std::span<const float> values, float limit);

// sums = the fixed form of `values`, or sums += it; and back.
void sum_fixed(std::span<const float> values, const FixedPoint& form, std::span<std::int64_t> sums,
               Accumulate accumulate);
void values_of_fixed(std::span<const std::int64_t> sums, std::span<float> values);

}  // namespace lockstep
