#include "dataset/loading/normalizer.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace lockstep {
namespace {

constexpr std::size_t pixel_values = 256;

// A table look-up for each pixel, `stride` bytes apart; `direction` 1 writes ahead from `row`, -1 backwards. As fast as
// the memory takes the result, without any instruction set; unrolled because the loop's own counting would cost half.
template <int direction>
void look_up(const std::uint8_t* pixels, std::int64_t stride, std::span<const float, pixel_values> table,
             std::int64_t count, float* row) {
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < count; ++i) row[i * direction] = table[pixels[i * stride]];
}

}  // namespace

void cut_window(const Picture& picture, const View& view, const PictureSize& image, std::span<std::uint8_t> pixels) {
  const auto channels = static_cast<std::int64_t>(pixels.size()) / (image.height * image.width);
  assert(static_cast<std::int64_t>(picture.pixels.size()) == picture.size.height * picture.size.width * channels);
  std::ranges::fill(pixels, std::uint8_t{0});
  // Columns [first, last) of the window lie inside the picture.
  const std::int64_t first = std::clamp<std::int64_t>(-view.left, 0, image.width);
  const std::int64_t last = std::clamp<std::int64_t>(picture.size.width - view.left, first, image.width);
  for (std::int64_t row = 0; row < image.height; ++row) {
    const std::int64_t from = view.top + row;
    if (from < 0 || from >= picture.size.height) continue;
    std::copy_n(picture.pixels.data() + (from * picture.size.width + view.left + first) * channels,
                (last - first) * channels, pixels.data() + (row * image.width + first) * channels);
  }
}

Normalizer::Normalizer(const SampleShape& shape, std::span<const float> mean, std::span<const float> deviation)
    : shape_(shape) {
  assert(mean.size() == static_cast<std::size_t>(shape.channels) && deviation.size() == mean.size());
  tables_.reserve(mean.size() * pixel_values);
  for (std::size_t channel = 0; channel < mean.size(); ++channel) {
    for (std::size_t pixel = 0; pixel < pixel_values; ++pixel) {
      tables_.push_back((static_cast<float>(pixel) / 255.0F - mean[channel]) / deviation[channel]);
    }
  }
}

void Normalizer::write(const Picture& picture, const View& view, std::span<float> image) const {
  const std::int64_t plane = shape_.height * shape_.width;
  assert(static_cast<std::int64_t>(picture.pixels.size()) ==
         picture.size.height * picture.size.width * shape_.channels);
  assert(static_cast<std::int64_t>(image.size()) == plane * shape_.channels);
  for (std::int64_t channel = 0; channel < shape_.channels; ++channel) {
    const float* const table = tables_.data() + channel * static_cast<std::int64_t>(pixel_values);
    write_plane(picture.pixels.data() + channel, picture.size,
                std::span<const float, pixel_values>(table, pixel_values), view, image.data() + channel * plane);
  }
}

void Normalizer::write_plane(const std::uint8_t* pixels, const PictureSize& size, std::span<const float, 256> table,
                             const View& view, float* plane) const {
  const std::int64_t width = shape_.width;
  const std::int64_t stride = shape_.channels;
  // Columns [first, last) of the window lie inside the picture.
  const std::int64_t first = std::clamp<std::int64_t>(-view.left, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(size.width - view.left, first, width);
  for (std::int64_t y = 0; y < shape_.height; ++y) {
    float* const row = plane + y * width;
    const std::int64_t source_y = y + view.top;
    if (first == last || source_y < 0 || source_y >= size.height) {
      std::fill_n(row, width, table[0]);
      continue;
    }
    const std::uint8_t* const source = pixels + (source_y * size.width + first + view.left) * stride;
    if (view.mirrored) {
      std::fill_n(row, width - last, table[0]);
      look_up<-1>(source, stride, table, last - first, row + width - 1 - first);
      std::fill_n(row + width - first, first, table[0]);
    } else {
      std::fill_n(row, first, table[0]);
      look_up<1>(source, stride, table, last - first, row + first);
      std::fill_n(row + last, width - last, table[0]);
    }
  }
}

}  // namespace lockstep
