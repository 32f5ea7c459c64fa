// Sums of fp32 values that are the same in any order and any grouping: whole multiples of a small power of two, added
// in 64 bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/host_device.hpp"

namespace lockstep {

// A value stands for value * 2^fraction_bits, rounded to nearest. 40 bits: a step of 9e-13 is what fp32 has next to
// 1.5e-5, about the size of a gradient; and whole sums may reach 2^22.
struct FixedPoint {
  static constexpr int fraction_bits = 40;

  float limit;  // a value must be smaller in size: then so many of them as are meant cannot leave 64 bits

  LOCKSTEP_HOST_DEVICE bool holds(float value) const { return std::fabs(value) < limit; }  // no NaN either
  LOCKSTEP_HOST_DEVICE std::int64_t fixed(float value) const {
    return nearest_whole(static_cast<double>(holds(value) ? value : 0.0F) * 0x1p40);
  }
  LOCKSTEP_HOST_DEVICE static float value(std::int64_t fixed) {
    return static_cast<float>(static_cast<double>(fixed) * 0x1p-40);
  }
};

// For sums of `terms` values.
constexpr FixedPoint fixed_point_for(int terms) { return {0x1p22F / static_cast<float>(terms)}; }

}  // namespace lockstep
