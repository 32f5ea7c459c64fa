#include "dataset/augment.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "base/random.hpp"

namespace lockstep {
namespace {

constexpr std::size_t pixel_values = 256;

// Uniform in [-crop_padding, crop_padding].
int shift(std::uint32_t bits) { return static_cast<int>(uniform(bits) * (2 * crop_padding + 1)) - crop_padding; }

}  // namespace

View choose_view(Augmentation augmentation, std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
  if (augmentation == Augmentation::none) return {};
  const auto bits = philox(seed, stream_counter(Stream::augmentation, epoch), static_cast<std::uint64_t>(position));
  const bool mirrored = augmentation == Augmentation::crop_and_flip && uniform(bits[2]) < 0.5F;
  return {shift(bits[0]), shift(bits[1]), mirrored};
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

void Normalizer::write(std::span<const std::uint8_t> pixels, const View& view, std::span<float> image) const {
  const std::int64_t plane = shape_.height * shape_.width;
  assert(static_cast<std::int64_t>(pixels.size()) == plane * shape_.channels && image.size() == pixels.size());
  for (std::int64_t channel = 0; channel < shape_.channels; ++channel) {
    const float* const table = tables_.data() + channel * static_cast<std::int64_t>(pixel_values);
    write_plane(pixels.data() + channel, std::span<const float, pixel_values>(table, pixel_values), view,
                image.data() + channel * plane);
  }
}

// A table look-up for each pixel: two loads and a store, which is as fast as the memory takes the result, and the value
// of a pixel is the same wherever it lies.
void Normalizer::write_plane(const std::uint8_t* pixels, std::span<const float, 256> table, const View& view,
                             float* plane) const {
  const std::int64_t width = shape_.width;
  const std::int64_t first_column = std::clamp<std::int64_t>(-view.dx, 0, width);  // of the window, inside the picture
  const std::int64_t last_column = std::clamp<std::int64_t>(width - view.dx, 0, width);
  const std::int64_t direction = view.mirrored ? -1 : 1;
  for (std::int64_t y = 0; y < shape_.height; ++y) {
    float* const row = plane + y * width;
    const std::int64_t source_y = y + view.dy;
    if (source_y < 0 || source_y >= shape_.height) {
      std::fill_n(row, width, table[0]);
      continue;
    }
    const std::uint8_t* source = pixels + (source_y * width + first_column + view.dx) * shape_.channels;
    float* target = view.mirrored ? row + width - 1 - first_column : row + first_column;
    for (std::int64_t x = first_column; x < last_column; ++x) {
      *target = table[*source];
      target += direction;
      source += shape_.channels;
    }
    std::fill_n(view.mirrored ? row + width - first_column : row, first_column, table[0]);
    std::fill_n(view.mirrored ? row : row + last_column, width - last_column, table[0]);
  }
}

}  // namespace lockstep
