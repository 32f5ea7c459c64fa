// Test-time augmentation: predictions use the weighted mean of the logits of several views of an image.
#pragma once

#include <array>
#include <cstdint>

#include "base/text/choice.hpp"

namespace lockstep {

enum class TestTimeAugmentation : std::uint8_t {
  plain,       // the image
  flip,        // the image and its mirror image
  flip_shift,  // also both, shifted by one pixel to two sides (Jordan 2024, "94% on CIFAR-10 in 3.29 seconds")
};

inline constexpr std::array<Choice<TestTimeAugmentation>, 3> test_augmentations{
    {{"none", TestTimeAugmentation::plain},
     {"flip", TestTimeAugmentation::flip},
     {"flip-shift", TestTimeAugmentation::flip_shift}}};

inline const char* test_augmentation_name(TestTimeAugmentation augmentation) {
  return test_augmentations.at(static_cast<std::size_t>(augmentation)).name;
}

}  // namespace lockstep
