// Counter-based random numbers: a pure function of (key, counter). A value does not depend on the values drawn before.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// Four independent 32-bit values for one counter.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low);

// Uniform in [0, 1), from the upper 24 bits: exact in fp32.
inline float uniform(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

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
  mirroring = 10
};

// The upper half of the counter: a stream, and an epoch or other number within it.
inline std::uint64_t stream_counter(Stream stream, std::int64_t number) {
  return std::uint64_t{static_cast<std::uint32_t>(stream)} << 32 | static_cast<std::uint32_t>(number);
}

}  // namespace lockstep
