#include "base/random.hpp"

#include <cmath>
#include <numbers>

namespace lockstep {

float normal(std::uint32_t a, std::uint32_t b) {
  // The logarithm's argument is in (0, 1]. Computed in double, so that libraries whose logarithms differ in the last
  // bit still give the same fp32 value.
  const double radius = std::sqrt(-2.0 * std::log(((a >> 8) + 1) * 0x1p-24));
  const double angle = 2.0 * std::numbers::pi * ((b >> 8) * 0x1p-24);
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace lockstep
