// Which way up a picture was taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "picture/picture.hpp"

namespace lockstep {

// 1 (upright) to 8, from the contents of a JPEG's APP1 segment; 1 where it holds no such thing.
int exif_orientation(std::span<const std::uint8_t> segment);

// The picture as EXIF's orientation wants it seen: mirrored, turned or both. 3 channels.
void turn_upright(OwnedPicture& picture, int orientation);

}  // namespace lockstep
