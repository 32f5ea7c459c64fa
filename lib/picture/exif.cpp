#include "picture/exif.hpp"

#include <libexif/exif-data.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace lockstep {

int exif_orientation(std::span<const std::uint8_t> segment) {
  constexpr std::string_view mark("Exif\0\0", 6);
  if (segment.size() <= mark.size() || std::memcmp(segment.data(), mark.data(), mark.size()) != 0) return 1;
  const auto release = [](ExifData* data) { exif_data_unref(data); };
  const std::unique_ptr<ExifData, decltype(release)> data(exif_data_new(), release);
  if (!data) return 1;
  // Nothing is to be repaired or added: one tag is looked at.
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(), segment.data(), static_cast<unsigned int>(segment.size()));
  const ExifEntry* const entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->size < 2) return 1;
  const int orientation = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

void turn_upright(OwnedPicture& picture, int orientation) {
  if (orientation == 1) return;
  // EXIF 2.3, tag 0x0112: where row 0 and column 0 of what is stored lie in what is seen.
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
