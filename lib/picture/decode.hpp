// Decodes a picture file of any supported format to upright RGB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "picture/picture.hpp"
#include "picture/picture_fault.hpp"

namespace lockstep {

// Decided by the first bytes, because file names can be wrong (ImageNet has a PNG named .JPEG).
enum class PictureFormat : std::uint8_t { jpeg, png, unknown };
PictureFormat picture_format(std::span<const std::byte> file);

// Pictures with more pixels are refused. This is the limit above which Pillow reports a decompression bomb.
inline constexpr std::int64_t max_pixels = 178'956'970;

// Significant bits of a sample in a 16-bit PNG.
inline constexpr int least_sample_bits = 8;
inline constexpr int max_sample_bits = 16;

enum class BitPosition : std::uint8_t { lowest, highest };

// How to read 16-bit samples if the file alone does not determine it.
struct SampleBits {
  // Number of significant bits, in the lowest positions, if the file does not state it.
  int unstated = max_sample_bits;
  // Position of the bits that the sBIT chunk states, if the values allow both. The PNG standard requires the highest.
  BitPosition stated = BitPosition::lowest;
  bool operator==(const SampleBits&) const = default;
};

struct DecodedPicture {
  OwnedPicture picture;  // RGB, turned upright by its EXIF orientation
  // Whether the file's own bytes can be stored instead of pixels: an upright baseline JPEG in gray or YCbCr.
  bool is_plain_jpeg = false;
  // Like is_plain_jpeg, but progressive: sequential_jpeg() converts it losslessly.
  bool is_progressive_jpeg = false;
  // What is unusual about the file, for odd_files.csv, such as "is CMYK". Usually empty.
  std::string remark;
};

// `bits` applies to PNG files. A JPEG with damage inside is decoded as far as libjpeg can, and gets a remark. Throws
// PictureFault if the file is not a JPEG or PNG, is truncated, damaged beyond reading, or larger than max_pixels.
// Thread-safe.
DecodedPicture decode_picture(std::span<const std::byte> file, const SampleBits& bits = {});

}  // namespace lockstep
