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

// Of a sample in a file of two bytes a sample.
inline constexpr int least_sample_bits = 8;
inline constexpr int most_sample_bits = 16;

enum class BitPlace : std::uint8_t { lowest, highest };

// How samples of 16 bits are read where their file alone does not tell.
struct SampleBits {
  // The significant bits, the lowest ones, in a file that does not state them.
  int unstated = most_sample_bits;
  // Where a file has the bits that its sBIT chunk states, if its values allow both. The PNG standard wants the highest.
  BitPlace stated = BitPlace::lowest;
  bool operator==(const SampleBits&) const = default;
};

struct DecodedPicture {
  OwnedPicture picture;  // RGB, upright: turned as the camera's EXIF says
  // Whether the file's own bytes may be stored in the place of the picture: a baseline JPEG of gray or YCbCr, upright.
  bool is_plain_jpeg = false;
  // The same, but progressive: sequential_jpeg() makes it plain without loss.
  bool is_progressive_jpeg = false;
  // What is odd about the file, for the list of such files: "is CMYK"; empty for most.
  std::string remark;
};

// `bits`: of PNG files. Throws PictureFault where the file is no JPEG or PNG, ends too early, is damaged
// beyond reading, or larger than most_pixels. A JPEG with damage in its middle is decoded as far as libjpeg can, with a
// remark. Thread-safe.
DecodedPicture decode_picture(std::span<const std::byte> file, const SampleBits& bits = {});

}  // namespace lockstep
