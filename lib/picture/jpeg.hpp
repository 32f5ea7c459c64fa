// JPEG through libjpeg-turbo. All functions are thread-safe and throw PictureFault if the file is faulty.
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

// Header fields, read without decoding.
struct JpegHeader {
  PictureSize size;  // as stored, before the EXIF rotation
  bool is_progressive = false;
  bool is_cmyk = false;  // CMYK or YCCK
  int orientation = 1;   // EXIF orientation, 1 (upright) to 8
};
JpegHeader read_jpeg_header(std::span<const std::byte> file);

// The whole picture as RGB, without EXIF rotation. CMYK is read as Adobe's inverted CMYK, as Pillow does. `remark`
// describes damage that libjpeg skipped; empty if there is none. A truncated file is a fault.
void decode_jpeg(std::span<const std::byte> file, OwnedPicture& picture, std::string& remark);

// Decodes the window `box` of the picture at 1 / `reduction` of its size. `reduction` is 1, 2, 4 or 8; sides are
// rounded up. With reduction 1 the pixels equal those of decode_jpeg(), to the bit. If the file is sequential and
// upright, only the blocks that overlap the box are decoded. `box` lies inside the reduced picture. For files without a
// remark from decode_jpeg(); damage is a fault here.
void decode_jpeg_window(std::span<const std::byte> file, const PictureBox& box, int reduction, OwnedPicture& window);

// Encodes a baseline JPEG, 4:2:0, without metadata. A pure function of its arguments. `quality` is libjpeg's, 1 to 100.
std::vector<std::uint8_t> encode_jpeg(const Picture& picture, int quality);

// Losslessly converts a progressive file to a sequential one without metadata. The pixels are the same, to the bit.
std::vector<std::uint8_t> sequential_jpeg(std::span<const std::byte> file);

}  // namespace lockstep
