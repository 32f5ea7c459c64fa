// Brightness, contrast and saturation of a picture, changed as Pillow's ImageEnhance changes them: the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace lockstep {

enum class ColourProperty : std::uint8_t { brightness, contrast, saturation };

// The distance of each pixel from what has nothing of the property (black, the mean gray of the picture, the gray of
// the pixel) is multiplied by `factor`, which is not negative: 0 leaves nothing of it, 1 the pixels as they are.
struct ColourStep {
  ColourProperty property = ColourProperty::brightness;
  float factor = 1;
  bool operator==(const ColourStep&) const = default;
};

// One after another.
using ColourSteps = std::array<ColourStep, 3>;

// `pixels` are RGB, of any number but none.
void change_colours(std::span<std::uint8_t> pixels, const ColourSteps& steps);

}  // namespace lockstep
