#include "picture/exif.hpp"

#include <libexif/exif-data.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace lockstep {
namespace {

constexpr std::string_view segment_mark("Exif\0\0", 6);

// The standard requires SHORT; some writers use other integer types.
std::int64_t number_in(const ExifEntry& entry, ExifByteOrder order) {
  if (entry.data == nullptr || entry.components < 1 || entry.size < exif_format_get_size(entry.format)) return 0;
  switch (entry.format) {
    case EXIF_FORMAT_BYTE:
    case EXIF_FORMAT_SBYTE:
      return entry.data[0];
    case EXIF_FORMAT_SHORT:
    case EXIF_FORMAT_SSHORT:
      return exif_get_short(entry.data, order);
    case EXIF_FORMAT_LONG:
    case EXIF_FORMAT_SLONG:
      return exif_get_long(entry.data, order);
    default:
      return 0;
  }
}

}  // namespace

int exif_orientation(std::span<const std::uint8_t> segment) {
  if (segment.size() <= segment_mark.size()) return 1;
  if (std::memcmp(segment.data(), segment_mark.data(), segment_mark.size()) != 0) return 1;
  const auto release = [](ExifData* data) { exif_data_unref(data); };
  const std::unique_ptr<ExifData, decltype(release)> data(exif_data_new(), release);
  if (!data) return 1;
  // Only one tag is read, so libexif must not repair or add tags.
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(), segment.data(), static_cast<unsigned int>(segment.size()));
  const ExifEntry* const entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr) return 1;
  const std::int64_t orientation = number_in(*entry, exif_data_get_byte_order(data.get()));
  return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
}

int tiff_orientation(std::span<const std::uint8_t> tiff) {
  std::vector<std::uint8_t> segment(segment_mark.begin(), segment_mark.end());
  segment.insert(segment.end(), tiff.begin(), tiff.end());
  return exif_orientation(segment);
}

int profile_orientation(std::string_view text) {
  // The first lines are empty, the name and the length.
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return 1;
    text.remove_prefix(end + 1);
  }
  std::vector<std::uint8_t> segment;
  std::optional<std::size_t> high;
  for (const char letter : text) {
    if (letter == '\n' || letter == '\r' || letter == ' ') continue;
    const std::size_t digit = std::string_view("0123456789abcdef").find(static_cast<char>(letter | 0x20));
    if (digit == std::string_view::npos) return 1;
    if (high) segment.push_back(static_cast<std::uint8_t>(*high << 4 | digit));
    high = high ? std::nullopt : std::optional(digit);
  }
  return exif_orientation(segment);
}

void turn_upright(OwnedPicture& picture, int orientation) {
  if (orientation == 1) return;
  // EXIF 2.3, tag 0x0112: where stored row 0 and column 0 belong in the upright picture.
  const bool swaps_axes = orientation >= 5;
  const bool from_the_bottom = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool from_the_right = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const PictureSize stored = picture.size;
  const PictureSize seen = swaps_axes ? PictureSize{stored.width, stored.height} : stored;
  std::vector<std::uint8_t> pixels(picture.pixels.size());
  for (std::int64_t row = 0; row < seen.height; ++row) {
    const std::int64_t down = from_the_bottom ? seen.height - 1 - row : row;
    for (std::int64_t column = 0; column < seen.width; ++column) {
      const std::int64_t along = from_the_right ? seen.width - 1 - column : column;
      const std::int64_t from = swaps_axes ? along * stored.width + down : down * stored.width + along;
      std::copy_n(picture.pixels.begin() + from * 3, 3, pixels.begin() + (row * seen.width + column) * 3);
    }
  }
  picture.pixels = std::move(pixels);
  picture.size = seen;
}

}  // namespace lockstep
