// Which way up a picture was taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "picture/picture.hpp"

namespace lockstep {

// All three return 1 (upright) to 8; 1 where the orientation is not there or is damaged.
// From the contents of a JPEG's APP1 segment: "Exif", two zero bytes, then a TIFF header.
int exif_orientation(std::span<const std::uint8_t> segment);
// From the contents of a PNG's eXIf chunk, which begins with the TIFF header.
int tiff_orientation(std::span<const std::uint8_t> tiff);
// From a PNG's text "Raw profile type exif", as ImageMagick and ExifTool write it: a name, a length, and an APP1
// segment in hexadecimal digits, each on lines of their own.
int profile_orientation(std::string_view text);

// The picture as EXIF's orientation wants it seen: mirrored, turned or both. 3 channels.
void turn_upright(OwnedPicture& picture, int orientation);

}  // namespace lockstep
