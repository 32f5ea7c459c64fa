// PNG by libpng.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "picture/picture.hpp"
#include "picture/picture_fault.hpp"

namespace lockstep {

// The whole picture as RGB: gray and palettes spread out, 16 bits rounded to 8, and of transparent pixels the colour
// that is stored (as Pillow's convert("RGB") does). `remark` says what of that was done. Thread-safe. Throws
// PictureFault.
void decode_png(std::span<const std::byte> file, OwnedPicture& picture, std::string& remark);

// The whole of a PNG file of RGB.
std::vector<std::uint8_t> encode_png(const Picture& picture);

}  // namespace lockstep
