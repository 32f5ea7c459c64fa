// Counter-based random numbers: a pure function of (key, counter). A value does not depend on the values drawn before.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// Four independent 32-bit values for one counter. Also runs on GPUs.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high,
                                              std::uint64_t counter_low) {
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

// Uniform in [0, 1), from the upper 24 bits: exact in fp32.
constexpr float uniform(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

// Standard normal by the Box-Muller transform of two values.
float normal(std::uint32_t a, std::uint32_t b);

// The uses of randomness. Each value starts the upper half of the counter, so that no two uses share a stream.
enum class Stream : std::uint32_t {
  order = 1,
  augmentation = 2,
  weights = 3,
  split = 4,
  synthetic = 5,
  pictures = 6,
  blocks = 7,
  windows = 8,
  search = 9,
  mirroring = 10,
  dropout = 11
};

// The upper half of the counter: a stream, and an epoch or other number within it.
inline std::uint64_t stream_counter(Stream stream, std::int64_t number) {
  return std::uint64_t{static_cast<std::uint32_t>(stream)} << 32 | static_cast<std::uint32_t>(number);
}

}  // namespace lockstep
