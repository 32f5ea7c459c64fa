// PNG through libpng.
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

// The whole picture as upright RGB. Samples are used as stored: gamma and color chunks are ignored. Gray and palettes
// become RGB, 16 bits become 8, and transparent pixels keep their stored color, as in Pillow's convert("RGB"). `remark`
// lists conversions and damage. Throws PictureFault. Thread-safe.
void decode_png(std::span<const std::byte> file, const SampleBits& bits, OwnedPicture& picture, std::string& remark);

// Of a 16-bit PNG: the significant bits from its sBIT chunk, 0 without one. std::nullopt for any other PNG. Does not
// decode the picture. Throws PictureFault.
std::optional<int> stated_bits_of(std::span<const std::byte> file);
// The largest sample of a 16-bit PNG. Throws PictureFault.
int largest_sample_of(std::span<const std::byte> file);

// The bytes of an RGB PNG file.
std::vector<std::uint8_t> encode_png(const Picture& picture);

}  // namespace lockstep
