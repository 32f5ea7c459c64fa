// Which elements dropout drops, the same on every device and on any number of ranks.
//
// The elements of a sample are numbered by pixel (row by row) and channel; four neighboring channels share one draw.
#pragma once

#include <array>
#include <cstdint>

#include "base/random.hpp"
#include "device/host_device.hpp"

namespace lockstep {

// The key of a micro-batch is that of the step, and the number of its first sample in the step's batch. Each is below
// 2^24, and so exact in fp32.
inline constexpr std::int64_t dropout_key_count = 3;
inline std::array<float, dropout_key_count> dropout_key_values(std::uint64_t seed, std::int64_t step,
                                                               std::int64_t first_sample) {
  const auto bits = philox(seed, stream_counter(Stream::dropout, 0), static_cast<std::uint64_t>(step));
  return {static_cast<float>(bits[0] >> 8), static_cast<float>(bits[1] >> 8), static_cast<float>(first_sample)};
}

// The draws of one layer in one micro-batch.
struct DropoutDraws {
  static constexpr std::int64_t quad_size = 4;  // channels of a draw

  std::uint32_t layer;
  float ratio;
  const float* key;
  std::int64_t channels;

  LOCKSTEP_HOST_DEVICE std::int64_t quads() const { return (channels + quad_size - 1) / quad_size; }  // of a pixel
  // Factors of the four channels of a quad of a pixel: 0 or 1 / (1 - ratio).
  LOCKSTEP_HOST_DEVICE std::array<float, quad_size> factors(std::int64_t sample, std::int64_t pixel,
                                                            std::int64_t quad) const {
    const std::uint64_t of_step = static_cast<std::uint64_t>(key[1]) << 24 | static_cast<std::uint64_t>(key[0]);
    const std::uint64_t of_sample = static_cast<std::uint64_t>(key[2]) + static_cast<std::uint64_t>(sample);
    const auto bits =
        philox(of_step, std::uint64_t{layer} << 32 | of_sample, static_cast<std::uint64_t>(pixel * quads() + quad));
    std::array<float, quad_size> result{};
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = uniform(bits[i]) < ratio ? 0 : 1 / (1 - ratio);
    return result;
  }
};

}  // namespace lockstep
