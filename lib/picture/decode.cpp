#include "picture/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "picture/exif.hpp"
#include "picture/jpeg.hpp"
#include "picture/png.hpp"
#include "picture/unread_format.hpp"

namespace lockstep {
namespace {

template <std::size_t count>
bool begins_with(std::span<const std::byte> file, const std::array<std::uint8_t, count>& mark) {
  return file.size() >= count &&
         std::equal(mark.begin(), mark.end(), file.begin(), [](auto a, std::byte b) { return std::byte{a} == b; });
}

// Appends a remark, separated by a comma; empty remarks are ignored.
void add_remark(std::string& remarks, const std::string& remark) {
  remarks += (remarks.empty() || remark.empty() ? "" : ", ") + remark;
}

DecodedPicture decode_jpeg_file(std::span<const std::byte> file) {
  const JpegHeader header = read_jpeg_header(file);
  DecodedPicture decoded;
  std::string damage;
  decode_jpeg(file, decoded.picture, damage);
  turn_upright(decoded.picture, header.orientation);
  if (header.is_cmyk) add_remark(decoded.remark, "is CMYK");
  if (header.orientation != 1) add_remark(decoded.remark, fmt::format("has EXIF orientation {}", header.orientation));
  add_remark(decoded.remark, damage);
  const bool is_as_seen = decoded.remark.empty();
  decoded.is_plain_jpeg = is_as_seen && !header.is_progressive;
  decoded.is_progressive_jpeg = is_as_seen && header.is_progressive;
  return decoded;
}

}  // namespace

PictureFormat picture_format(std::span<const std::byte> file) {
  constexpr std::array<std::uint8_t, 3> jpeg_mark{0xFF, 0xD8, 0xFF};
  constexpr std::array<std::uint8_t, 8> png_mark{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (begins_with(file, jpeg_mark)) return PictureFormat::jpeg;
  if (begins_with(file, png_mark)) return PictureFormat::png;
  return PictureFormat::unknown;
}

DecodedPicture decode_picture(std::span<const std::byte> file, const SampleBits& bits) {
  switch (picture_format(file)) {
    case PictureFormat::jpeg:
      return decode_jpeg_file(file);
    case PictureFormat::png: {
      DecodedPicture decoded;
      decode_png(file, bits, decoded.picture, decoded.remark);
      return decoded;
    }
    case PictureFormat::unknown:
      break;
  }
  const std::string message = unsupported_format_message(file);
  if (!message.empty()) throw PictureFault(message);
  throw PictureFault(file.empty() ? "is empty" : "is neither JPEG nor PNG");
}

}  // namespace lockstep
