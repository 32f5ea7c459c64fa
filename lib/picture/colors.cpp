#include "picture/colors.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {
namespace {

constexpr std::int64_t channels = 3;

// ITU-R 601-2 in 65,536ths, as Pillow rounds it.
inline std::int32_t gray_of(std::int32_t red, std::int32_t green, std::int32_t blue) {
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

// Product and sum are rounded separately: this file is compiled without floating-point contraction.
inline std::uint8_t blend(std::int32_t without, std::int32_t pixel, float factor) {
  const float mixed = static_cast<float>(without) + factor * static_cast<float>(pixel - without);
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(std::clamp(mixed, 0.0F, 255.0F)));
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void blend_with(std::int32_t without,
                                                                                      float factor, std::uint8_t* bytes,
                                                                                      std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) bytes[i] = blend(without, bytes[i], factor);
}

// Most pixels summed at once: their sum fits into 32 bits.
constexpr std::int64_t max_summed = 1 << 16;

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] std::int64_t sum_of_grays(
    const std::uint8_t* pixels, std::int64_t count) {
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += gray_of(pixels[i * channels], pixels[i * channels + 1], pixels[i * channels + 2]);
  }
  return sum;
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void blend_with_grays(float factor,
                                                                                            std::uint8_t* pixels,
                                                                                            std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint8_t* const pixel = pixels + i * channels;
    const std::int32_t gray = gray_of(pixel[0], pixel[1], pixel[2]);
    pixel[0] = blend(gray, pixel[0], factor);
    pixel[1] = blend(gray, pixel[1], factor);
    pixel[2] = blend(gray, pixel[2], factor);
  }
}

std::int32_t mean_gray(std::span<const std::uint8_t> pixels) {
  const auto count = static_cast<std::int64_t>(pixels.size()) / channels;
  std::int64_t sum = 0;
  for (std::int64_t first = 0; first < count; first += max_summed) {
    sum += sum_of_grays(pixels.data() + first * channels, std::min(max_summed, count - first));
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(count);
  return static_cast<std::int32_t>(mean + 0.5);  // NOLINT(bugprone-incorrect-roundings): as Pillow rounds
}

}  // namespace

void adjust_colors(std::span<std::uint8_t> pixels, const ColorSteps& steps) {
  const auto bytes = static_cast<std::int64_t>(pixels.size());
  assert(bytes > 0 && bytes % channels == 0);
  for (const ColorStep& step : steps) {
    if (step.factor == 1) continue;
    switch (step.property) {
      case ColorProperty::brightness:
        blend_with(0, step.factor, pixels.data(), bytes);
        break;
      case ColorProperty::contrast:
        blend_with(mean_gray(pixels), step.factor, pixels.data(), bytes);
        break;
      case ColorProperty::saturation:
        blend_with_grays(step.factor, pixels.data(), bytes / channels);
        break;
    }
  }
}

}  // namespace lockstep
