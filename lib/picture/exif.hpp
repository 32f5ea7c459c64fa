// EXIF orientation of a picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "picture/picture.hpp"

namespace lockstep {

// The three functions return 1 (upright) to 8; 1 if the orientation is missing or damaged. This one reads a JPEG's APP1
// segment: "Exif", two zero bytes, then a TIFF header.
int exif_orientation(std::span<const std::uint8_t> segment);
// Reads a PNG's eXIf chunk, which begins with the TIFF header.
int tiff_orientation(std::span<const std::uint8_t> tiff);
// Reads a PNG's text chunk "Raw profile type exif", as ImageMagick and ExifTool write it: a name, a length, and an APP1
// segment in hexadecimal digits, on separate lines.
int profile_orientation(std::string_view text);

// Mirrors or rotates the picture, or both, by its EXIF orientation. 3 channels.
void turn_upright(OwnedPicture& picture, int orientation);

}  // namespace lockstep
