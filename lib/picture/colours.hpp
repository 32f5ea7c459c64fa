// Brightness, contrast and saturation changes, bit-identical to Pillow's ImageEnhance.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace lockstep {

enum class ColourProperty : std::uint8_t { brightness, contrast, saturation };

// A pixel p becomes g + factor * (p - g), with factor >= 0. The degenerate image g is black (brightness), the mean gray
// of the picture (contrast) or the gray of the pixel (saturation). Factor 0 gives g, factor 1 leaves the pixels
// unchanged.
struct ColourStep {
  ColourProperty property = ColourProperty::brightness;
  float factor = 1;
  bool operator==(const ColourStep&) const = default;
};

// Applied in this order.
using ColourSteps = std::array<ColourStep, 3>;

// `pixels` are RGB. Any number of pixels except zero.
void change_colours(std::span<std::uint8_t> pixels, const ColourSteps& steps);

}  // namespace lockstep
