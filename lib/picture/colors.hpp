// Brightness, contrast and saturation changes, bit-identical to Pillow's ImageEnhance.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace lockstep {

enum class ColorProperty : std::uint8_t { brightness, contrast, saturation };

// A pixel p becomes g + factor * (p - g), with factor >= 0. The degenerate image g is black (brightness), the mean gray
// of the picture (contrast) or the gray of the pixel (saturation). Factor 0 gives g, factor 1 leaves the pixels
// unchanged.
struct ColorStep {
  ColorProperty property = ColorProperty::brightness;
  float factor = 1;
  bool operator==(const ColorStep&) const = default;
};

// Applied in this order.
using ColorSteps = std::array<ColorStep, 3>;

// `pixels` are RGB. Any number of pixels except zero.
void adjust_colors(std::span<std::uint8_t> pixels, const ColorSteps& steps);

}  // namespace lockstep
