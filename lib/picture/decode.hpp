// A picture file of any kind that we read, as upright RGB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "picture/picture.hpp"
#include "picture/picture_fault.hpp"

namespace lockstep {

// By the first bytes: names lie (ImageNet has a PNG that is called .JPEG).
enum class PictureFormat : std::uint8_t { jpeg, png, unknown };
PictureFormat picture_format(std::span<const std::byte> file);

// What decoding needs no more memory for: as many pixels as Pillow takes without calling a file a decompression bomb.
inline constexpr std::int64_t most_pixels = 178'956'970;

struct DecodedPicture {
  OwnedPicture picture;  // RGB, upright: turned as the camera's EXIF says
  // Whether the file's own bytes may be stored in the place of the picture: a baseline JPEG of gray or YCbCr, upright.
  bool is_plain_jpeg = false;
  // The same, but progressive: sequential_jpeg() makes it plain without loss.
  bool is_progressive_jpeg = false;
  // What is odd about the file, for the list of such files: "is CMYK"; empty for most.
  std::string remark;
};

// Throws PictureFault where the file is no JPEG or PNG, ends too early, is damaged beyond reading, or larger than
// most_pixels. A JPEG with damage in its middle is decoded as far as libjpeg can, with a remark. Thread-safe.
DecodedPicture decode_picture(std::span<const std::byte> file);

}  // namespace lockstep
