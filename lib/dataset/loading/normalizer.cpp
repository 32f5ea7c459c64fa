#include "dataset/loading/normalizer.hpp"

#include <xmmintrin.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <memory>

namespace lockstep {
namespace {

// Images this large are evicted from the caches before they are used. Non-temporal stores avoid reading their memory
// first. They are worth 10 % in picture_bench.
constexpr std::int64_t least_bytes_past_caches = 128 << 10;
constexpr std::size_t longest_row_past_caches = 4096;  // pixels
constexpr std::size_t vector_bytes = 16;

bool goes_past_caches(std::span<const float> image, std::int64_t width) {
  return static_cast<std::int64_t>(image.size_bytes()) >= least_bytes_past_caches &&
         static_cast<std::size_t>(width) <= longest_row_past_caches &&
         static_cast<std::size_t>(width) * sizeof(float) % vector_bytes == 0 &&
         reinterpret_cast<std::uintptr_t>(image.data()) % vector_bytes == 0;
}

void write_past_caches(const float* from, std::int64_t count, float* to) {
  constexpr std::int64_t lanes = vector_bytes / sizeof(float);
  for (std::int64_t i = 0; i < count; i += lanes) _mm_stream_ps(to + i, _mm_load_ps(from + i));
}

// Row `y` of the window, planar: [channels, width], 0 outside the picture. `unmirrored` is scratch space for one row.
void fill_rows(const Picture& picture, const AugmentationParams& augmentation, std::int64_t y, const SampleShape& shape,
               std::span<std::uint8_t> rows, std::span<std::uint8_t> unmirrored) {
  const std::int64_t width = shape.width;
  // Columns [first, last) of the window are inside the picture.
  const std::int64_t first = std::clamp<std::int64_t>(-augmentation.left, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(picture.size.width - augmentation.left, first, width);
  const std::int64_t from = y + augmentation.top;
  const bool is_outside = from < 0 || from >= picture.size.height;
  if (is_outside || last - first < width) std::ranges::fill(rows, std::uint8_t{0});
  if (is_outside || first == last) return;
  const std::uint8_t* const pixels =
      picture.pixels.data() + (from * picture.size.width + augmentation.left + first) * shape.channels;
  split_channels(pixels, shape.channels, last - first, rows.data() + first, width);
  if (!augmentation.mirrored) return;
  for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
    std::uint8_t* const row = rows.data() + channel * width;
    std::copy_n(row, width, unmirrored.data());
    mirror_row(unmirrored.data(), width, row);
  }
}

}  // namespace

void cut_window(const Picture& picture, const AugmentationParams& augmentation, const PictureSize& image,
                std::span<std::uint8_t> pixels) {
  const auto channels = static_cast<std::int64_t>(pixels.size()) / (image.height * image.width);
  assert(static_cast<std::int64_t>(picture.pixels.size()) == picture.size.height * picture.size.width * channels);
  std::ranges::fill(pixels, std::uint8_t{0});
  // Columns [first, last) of the window are inside the picture.
  const std::int64_t first = std::clamp<std::int64_t>(-augmentation.left, 0, image.width);
  const std::int64_t last = std::clamp<std::int64_t>(picture.size.width - augmentation.left, first, image.width);
  for (std::int64_t row = 0; row < image.height; ++row) {
    const std::int64_t from = augmentation.top + row;
    if (from < 0 || from >= picture.size.height) continue;
    std::copy_n(picture.pixels.data() + (from * picture.size.width + augmentation.left + first) * channels,
                (last - first) * channels, pixels.data() + (row * image.width + first) * channels);
  }
}

Normalizer::Normalizer(const SampleShape& shape, std::span<const float> mean, std::span<const float> deviation)
    : shape_(shape) {
  assert(mean.size() == static_cast<std::size_t>(shape.channels) && deviation.size() == mean.size());
  for (std::size_t channel = 0; channel < mean.size(); ++channel)
    scales_.emplace_back(mean[channel], deviation[channel]);
}

void Normalizer::write(const Picture& picture, const AugmentationParams& augmentation, std::span<float> image) const {
  const std::int64_t width = shape_.width;
  assert(static_cast<std::int64_t>(picture.pixels.size()) ==
         picture.size.height * picture.size.width * shape_.channels);
  assert(static_cast<std::int64_t>(image.size()) == shape_.height * width * shape_.channels);
  const bool goes_past = goes_past_caches(image, width);
  alignas(vector_bytes) std::array<float, longest_row_past_caches> passing;
  const auto bytes = static_cast<std::size_t>(shape_.channels * width);
  const auto room = std::make_unique_for_overwrite<std::uint8_t[]>(bytes + static_cast<std::size_t>(width));
  const std::span<std::uint8_t> rows(room.get(), bytes);
  const PictureBox& erased = augmentation.erased;
  for (std::int64_t y = 0; y < shape_.height; ++y) {
    fill_rows(picture, augmentation, y, shape_, rows, {room.get() + bytes, static_cast<std::size_t>(width)});
    const bool has_erased = y >= erased.top && y < erased.top + erased.size.height;
    for (std::int64_t channel = 0; channel < shape_.channels; ++channel) {
      float* const target = image.data() + (channel * shape_.height + y) * width;
      float* const row = goes_past ? passing.data() : target;
      scales_[static_cast<std::size_t>(channel)].write(
          rows.subspan(static_cast<std::size_t>(channel * width), static_cast<std::size_t>(width)), row);
      if (has_erased) std::fill_n(row + erased.left, erased.size.width, 0.0F);
      if (goes_past) write_past_caches(row, width, target);
    }
  }
  if (goes_past) _mm_sfence();  // before another thread reads the image
}

}  // namespace lockstep
