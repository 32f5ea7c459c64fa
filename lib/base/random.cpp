#include "base/random.hpp"

#include <cmath>
#include <numbers>

namespace lockstep {

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low) {
  // Multipliers and Weyl increments of Philox4x32, from the paper's table 2 and section 3.
  constexpr std::uint64_t multiplier_0 = 0xD2511F53;
  constexpr std::uint64_t multiplier_1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl_0 = 0x9E3779B9;
  constexpr std::uint32_t weyl_1 = 0xBB67AE85;
  constexpr int rounds = 10;

  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); };
  std::array<std::uint32_t, 4> counter = {low(counter_low), high(counter_low), low(counter_high), high(counter_high)};
  std::uint32_t key_0 = low(key);
  std::uint32_t key_1 = high(key);
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t product_0 = multiplier_0 * counter[0];
    const std::uint64_t product_1 = multiplier_1 * counter[2];
    counter = {high(product_1) ^ counter[1] ^ key_0, low(product_1), high(product_0) ^ counter[3] ^ key_1,
               low(product_0)};
    key_0 += weyl_0;
    key_1 += weyl_1;
  }
  return counter;
}

float normal(std::uint32_t a, std::uint32_t b) {
  // The logarithm's argument is in (0, 1]. Computed in double, so that libraries whose logarithms differ in the last
  // bit still give the same fp32 value.
  const double radius = std::sqrt(-2.0 * std::log(((a >> 8) + 1) * 0x1p-24));
  const double angle = 2.0 * std::numbers::pi * ((b >> 8) * 0x1p-24);
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace lockstep
