#include "dataset/loading/pixel_rows.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr float largest_pixel = 255.0F;

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

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void split_three(
    const std::uint8_t* __restrict pixels, std::int64_t count, std::uint8_t* __restrict first,
    std::uint8_t* __restrict second, std::uint8_t* __restrict third) {
  for (std::int64_t i = 0; i < count; ++i) {
    first[i] = pixels[3 * i];
    second[i] = pixels[3 * i + 1];
    third[i] = pixels[3 * i + 2];
  }
}

}  // namespace

void split_channels(const std::uint8_t* pixels, std::int64_t channels, std::int64_t count, std::uint8_t* rows,
                    std::int64_t stride) {
  if (channels == 3) return split_three(pixels, count, rows, rows + stride, rows + 2 * stride);
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t i = 0; i < count; ++i) rows[channel * stride + i] = pixels[i * channels + channel];
  }
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void mirror_row(
    const std::uint8_t* __restrict row, std::int64_t count, std::uint8_t* __restrict mirrored) {
  for (std::int64_t i = 0; i < count; ++i) mirrored[i] = row[count - 1 - i];
}

PixelScale::PixelScale(float mean, float deviation) : mean_(mean), deviation_(deviation) {
  std::array<std::uint8_t, 256> pixels;
  for (std::size_t pixel = 0; pixel < table_.size(); ++pixel) {
    pixels[pixel] = static_cast<std::uint8_t>(pixel);
    table_[pixel] = (static_cast<float>(pixel) / largest_pixel - mean) / deviation;
  }
  std::array<float, 256> computed;
  compute(pixels.data(), std::ssize(pixels), mean, deviation, computed.data());
  is_computed_ = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2") && computed == table_;
}

void PixelScale::write(std::span<const std::uint8_t> pixels, float* values) const {
  if (is_computed_) return compute(pixels.data(), std::ssize(pixels), mean_, deviation_, values);
  look_up(pixels.data(), std::ssize(pixels), table_, values);
}

}  // namespace lockstep
