#include "dataset/loading/normalizer.hpp"

#include <xmmintrin.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>

namespace lockstep {
namespace {

constexpr float largest_pixel = 255.0F;

// Images this large are evicted from the caches before they are used. Non-temporal stores avoid reading their memory
// first. They are worth 10 % in picture_bench.
constexpr std::size_t least_bytes_past_caches = 128 << 10;
constexpr std::int64_t vector_bytes = 16;
constexpr std::int64_t lanes = 4;  // values in a vector

// Pixels are converted in pieces that stay in the first-level cache.
constexpr std::int64_t piece_bytes = 3 << 10;
constexpr std::int64_t longest_piece = 1 << 10;  // pixels

bool goes_past_caches(std::span<const float> image, std::int64_t plane) {
  return image.size_bytes() >= least_bytes_past_caches && plane % lanes == 0 &&
         reinterpret_cast<std::uintptr_t>(image.data()) % vector_bytes == 0;
}

void write_past_caches(const float* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; i += lanes) _mm_stream_ps(to + i, _mm_load_ps(from + i));
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void split_three(
    const std::uint8_t* __restrict pixels, std::int64_t count, std::uint8_t* __restrict first,
    std::uint8_t* __restrict second, std::uint8_t* __restrict third) {
  for (std::int64_t i = 0; i < count; ++i) {
    first[i] = pixels[3 * i];
    second[i] = pixels[3 * i + 1];
    third[i] = pixels[3 * i + 2];
  }
}

// Converts pixels [count, channels] to rows [channels, count], `stride` bytes apart.
void split_channels(const std::uint8_t* pixels, std::int64_t channels, std::int64_t count, std::uint8_t* rows,
                    std::int64_t stride) {
  if (channels == 3) return split_three(pixels, count, rows, rows + stride, rows + 2 * stride);
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t i = 0; i < count; ++i) rows[channel * stride + i] = pixels[i * channels + channel];
  }
}

// Division by multiplication: with the reciprocal, and with one correction of the remainder. It equals correctly
// rounded division except for rare divisors (Markstein, IBM Journal of Research and Development 34, 1990). So the
// constructor compares all results.
struct Divisor {
  explicit Divisor(float by) : value(by), reciprocal(1.0F / by) {}
  float value;
  float reciprocal;
};

[[gnu::always_inline]] inline float quotient(float dividend, const Divisor& by) {
  const float near = dividend * by.reciprocal;
  return std::fma(std::fma(-near, by.value, dividend), by.reciprocal, near);
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void compute(const std::uint8_t* pixels,
                                                                                   std::int64_t count, float mean,
                                                                                   float deviation, float* values) {
  const Divisor of_pixels(largest_pixel);
  const Divisor of_channel(deviation);
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = quotient(quotient(static_cast<float>(pixels[i]), of_pixels) - mean, of_channel);
  }
}

// Unrolled, because loop overhead would otherwise be half of the time.
void look_up(const std::uint8_t* pixels, std::int64_t count, const std::array<float, 256>& table, float* values) {
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < count; ++i) values[i] = table[pixels[i]];
}

}  // namespace

Normalizer::Channel::Channel(float mean, float deviation) : mean_(mean), deviation_(deviation) {
  std::array<std::uint8_t, 256> pixels;
  for (std::size_t pixel = 0; pixel < table_.size(); ++pixel) {
    pixels[pixel] = static_cast<std::uint8_t>(pixel);
    table_[pixel] = (static_cast<float>(pixel) / largest_pixel - mean) / deviation;
  }
  std::array<float, 256> computed;
  compute(pixels.data(), std::ssize(pixels), mean, deviation, computed.data());
  is_computed_ = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2") && computed == table_;
}

void Normalizer::Channel::write(const std::uint8_t* pixels, std::int64_t count, float* values) const {
  if (is_computed_) return compute(pixels, count, mean_, deviation_, values);
  look_up(pixels, count, table_, values);
}

Normalizer::Normalizer(std::span<const float> mean, std::span<const float> deviation) {
  assert(deviation.size() == mean.size() && std::ssize(mean) * lanes <= piece_bytes);
  for (std::size_t channel = 0; channel < mean.size(); ++channel)
    channels_.emplace_back(mean[channel], deviation[channel]);
}

void Normalizer::write(std::span<const std::uint8_t> pixels, std::span<float> image) const {
  const auto channels = std::ssize(channels_);
  const auto plane = std::ssize(pixels) / channels;
  assert(image.size() == pixels.size());
  const bool goes_past = goes_past_caches(image, plane);
  alignas(vector_bytes) std::array<float, longest_piece> passing;
  std::array<std::uint8_t, piece_bytes> rows;
  const std::int64_t piece = std::min(longest_piece, piece_bytes / channels / lanes * lanes);
  for (std::int64_t first = 0; first < plane; first += piece) {
    const std::int64_t count = std::min(piece, plane - first);
    split_channels(pixels.data() + first * channels, channels, count, rows.data(), piece);
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      float* const target = image.data() + channel * plane + first;
      float* const values = goes_past ? passing.data() : target;
      channels_[static_cast<std::size_t>(channel)].write(rows.data() + channel * piece, count, values);
      if (goes_past) write_past_caches(values, count, target);
    }
  }
  if (goes_past) _mm_sfence();  // before another thread reads the image
}

}  // namespace lockstep
