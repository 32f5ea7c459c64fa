#include "dataset/loading/window.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "device/reflect.hpp"

namespace lockstep {
namespace {

// Reverses the order of the pixels of a row, here of one channel. `row` and `mirrored` must not overlap.
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void mirror_gray(
    const std::uint8_t* __restrict row, std::int64_t count, std::uint8_t* __restrict mirrored) {
  for (std::int64_t i = 0; i < count; ++i) mirrored[i] = row[count - 1 - i];
}

// Five pixels at once. A vector has one byte more: one that precedes them in `row`, and that the next vector overwrites
// in `mirrored`.
[[gnu::target_clones("arch=x86-64-v3", "default")]] void mirror_rgb(const std::uint8_t* __restrict row,
                                                                    std::int64_t count,
                                                                    std::uint8_t* __restrict mirrored) {
  using Bytes [[gnu::vector_size(16)]] = std::uint8_t;
  std::int64_t i = 0;
  for (; i + 6 <= count; i += 5) {
    Bytes pixels;
    std::memcpy(&pixels, row + 3 * (count - i - 5) - 1, sizeof pixels);
    pixels = __builtin_shufflevector(pixels, pixels, 13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
    std::memcpy(mirrored + 3 * i, &pixels, sizeof pixels);
  }
  for (; i < count; ++i) std::copy_n(row + 3 * (count - 1 - i), 3, mirrored + 3 * i);
}

void mirror_row(const std::uint8_t* row, std::int64_t channels, std::int64_t count, std::uint8_t* mirrored) {
  if (channels == 1) return mirror_gray(row, count, mirrored);
  if (channels == 3) return mirror_rgb(row, count, mirrored);
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(row + channels * (count - 1 - i), channels, mirrored + channels * i);
  }
}

// A row of a window: columns [first, last) are in the part.
struct Row {
  std::span<std::uint8_t> pixels;
  std::int64_t channels;
  std::int64_t first;
  std::int64_t last;
};

// Fills the columns outside the part with reflected pixels of the same row. `shown` is column `part_left` of a picture
// of `picture_width` pixels.
void reflect_columns(const Row& row, const AugmentationParams& augmentation, std::int64_t picture_width,
                     const std::uint8_t* shown, std::int64_t part_left) {
  const std::int64_t width = std::ssize(row.pixels) / row.channels;
  const auto put = [&](std::int64_t column) {
    const std::int64_t from = reflected(augmentation.left + column, picture_width) - part_left;
    const std::int64_t to = augmentation.mirrored ? width - 1 - column : column;
    std::copy_n(shown + from * row.channels, row.channels, row.pixels.data() + to * row.channels);
  };
  for (std::int64_t column = 0; column < row.first; ++column) put(column);
  for (std::int64_t column = row.last; column < width; ++column) put(column);
}

// A side of the part of a picture that a window shows, of `count` pixels from `first` on: its first pixel and its
// length.
std::pair<std::int64_t, std::int64_t> shown_side(std::int64_t first, std::int64_t count, std::int64_t limit,
                                                 CropFill fill) {
  std::int64_t begin = std::clamp<std::int64_t>(first, 0, limit);
  std::int64_t end = std::clamp<std::int64_t>(first + count, begin, limit);
  if (fill == CropFill::zeros) return {begin, end - begin};
  begin = limit;
  end = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    begin = std::min(begin, reflected(i, limit));
    end = std::max(end, reflected(i, limit) + 1);
  }
  return {begin, end - begin};
}

}  // namespace

PictureBox shown_part(const AugmentationParams& augmentation, const PictureSize& image, const PictureSize& picture) {
  const auto [top, height] = shown_side(augmentation.top, image.height, picture.height, augmentation.fill);
  const auto [left, width] = shown_side(augmentation.left, image.width, picture.width, augmentation.fill);
  return {top, left, {height, width}};
}

void cut_window(const PicturePart& part, const AugmentationParams& augmentation, const PictureSize& image,
                std::span<std::uint8_t> pixels) {
  const auto& [stored, size] = part.pixels;
  const auto channels = static_cast<std::int64_t>(pixels.size()) / (image.height * image.width);
  assert(static_cast<std::int64_t>(stored.size()) == size.height * size.width * channels);
  const std::int64_t top = augmentation.top - part.top;
  const std::int64_t left = augmentation.left - part.left;
  // Columns [first, last) of the window are inside the part.
  const std::int64_t first = std::clamp<std::int64_t>(-left, 0, image.width);
  const std::int64_t last = std::clamp<std::int64_t>(size.width - left, first, image.width);
  const std::int64_t row_bytes = image.width * channels;
  const bool reflects = augmentation.fill == CropFill::reflect;
  const PictureSize& whole = augmentation.resampling ? augmentation.resampling->size : size;
  for (std::int64_t row = 0; row < image.height; ++row) {
    std::uint8_t* const to = pixels.data() + row * row_bytes;
    const std::int64_t from = reflects ? reflected(augmentation.top + row, whole.height) - part.top : top + row;
    const bool is_outside = from < 0 || from >= size.height || first == last;
    if (reflects) {
      const std::uint8_t* const shown = stored.data() + from * size.width * channels;
      reflect_columns({{to, static_cast<std::size_t>(row_bytes)}, channels, first, last}, augmentation, whole.width,
                      shown, part.left);
    } else if (is_outside || last - first < image.width) {
      std::fill_n(to, row_bytes, std::uint8_t{0});
    }
    if (is_outside) continue;
    const std::uint8_t* const shown = stored.data() + (from * size.width + left + first) * channels;
    if (augmentation.mirrored) {
      mirror_row(shown, channels, last - first, to + (image.width - last) * channels);
    } else {
      std::copy_n(shown, (last - first) * channels, to + first * channels);
    }
  }
}

}  // namespace lockstep
