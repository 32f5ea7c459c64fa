// JPEG by libjpeg-turbo. All of it thread-safe; all of it throws PictureFault for what the file has wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "picture/picture.hpp"
#include "picture/picture_fault.hpp"
#include "picture/resize.hpp"

namespace lockstep {

// As the header says, before anything is decoded.
struct JpegHeader {
  PictureSize size;  // as stored: not yet turned upright
  bool is_progressive = false;
  bool is_four_coloured = false;  // CMYK or YCCK
  int orientation = 1;            // EXIF's, 1 (upright) to 8
};
JpegHeader read_jpeg_header(std::span<const std::byte> file);

// The whole picture as RGB, not turned. CMYK is taken for Adobe's inverted one, as Pillow does. `remark` is what
// libjpeg found damaged and went on from; empty where the file is whole. An end that comes too early is a fault.
void decode_jpeg(std::span<const std::byte> file, OwnedPicture& picture, std::string& remark);

// The part under `box` of the picture at 1 / `reduction` of its size: 1, 2, 4 or 8, sides rounded up. As decode_jpeg()
// gives it, to the bit, where it is not reduced. Of a file that can be decoded in one go and lies upright, only the
// blocks that the box touches are decoded. `box` lies inside the reduced picture. For files of which decode_jpeg() has
// nothing to remark; damage is a fault here.
void decode_jpeg_window(std::span<const std::byte> file, const PictureBox& box, int reduction, OwnedPicture& window);

// Baseline, 4:2:0, without metadata: a pure function of its arguments. `quality` is libjpeg's, 1 to 100.
std::vector<std::uint8_t> encode_jpeg(const Picture& picture, int quality);

// A progressive file's coefficients in baseline order, without metadata: the same pixels to the bit, decoded in one go.
std::vector<std::uint8_t> sequential_jpeg(std::span<const std::byte> file);

}  // namespace lockstep
