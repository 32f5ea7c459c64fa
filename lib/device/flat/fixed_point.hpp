// Reproducible sums of fp32 values, equal in any order and grouping. Values become integer multiples of a small power
// of two and are added in 64 bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/host_device.hpp"

namespace lockstep {

// A value is stored as value * 2^fraction_bits, rounded to nearest. With 40 bits, the step of 9e-13 is that of fp32
// near 1.5e-5, about the size of a gradient, and sums may reach 2^22.
struct FixedPoint {
  static constexpr int fraction_bits = 40;

  float limit;  // exclusive bound on |value|: then the intended number of terms cannot overflow

  LOCKSTEP_HOST_DEVICE bool holds(float value) const { return std::fabs(value) < limit; }  // false for NaN
  LOCKSTEP_HOST_DEVICE std::int64_t fixed(float value) const {
    return round_to_int64(static_cast<double>(holds(value) ? value : 0.0F) * 0x1p40);
  }
  LOCKSTEP_HOST_DEVICE static float value(std::int64_t fixed) {
    return static_cast<float>(static_cast<double>(fixed) * 0x1p-40);
  }
};

// For sums of `terms` values.
constexpr FixedPoint fixed_point_for(int terms) { return {0x1p22F / static_cast<float>(terms)}; }

}  // namespace lockstep
