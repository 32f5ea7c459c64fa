// PNG by libpng.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "picture/decode.hpp"
#include "picture/picture.hpp"
#include "picture/picture_fault.hpp"

namespace lockstep {

// The whole picture as upright RGB, samples as they are stored: no chunk on gamma or colours changes them. Gray and
// palettes become RGB, 16 bits become 8, and transparent pixels keep their stored colour (as Pillow's convert("RGB")
// has it). `remark` lists what was changed or is damaged. Thread-safe. Throws PictureFault.
void decode_png(std::span<const std::byte> file, const SampleBits& bits, OwnedPicture& picture, std::string& remark);

// The values of a 16-bit PNG.
struct WideSamples {
  int stated_bits = 0;  // by the sBIT chunk; 0: the file has none
  int largest = 0;
};
// Nothing for every other PNG file. Throws PictureFault.
std::optional<WideSamples> wide_samples_of(std::span<const std::byte> file);

// The whole of a PNG file of RGB.
std::vector<std::uint8_t> encode_png(const Picture& picture);

}  // namespace lockstep
