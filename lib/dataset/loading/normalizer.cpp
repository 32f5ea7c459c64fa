#include "dataset/loading/normalizer.hpp"

#include <xmmintrin.h>

#include <algorithm>
#include <array>
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

// Images so large that a part of a batch leaves the caches before it is used go past them: nothing is read of the
// memory that they are written to. picture_bench gains a tenth by it.
constexpr std::int64_t least_bytes_past_caches = 128 << 10;
constexpr std::size_t longest_row_past_caches = 4096;  // pixels
constexpr std::size_t vector_bytes = 16;

enum class Way : std::uint8_t { through_caches, past_caches };

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

// One channel of a picture, and of the images that it becomes.
struct Plane {
  const std::uint8_t* pixels;
  const PictureSize& size;
  const SampleShape& shape;
  std::span<const float, pixel_values> table;
};

template <Way way>
void write_plane(const Plane& from, const View& view, float* plane) {
  alignas(vector_bytes) std::array<float, way == Way::past_caches ? longest_row_past_caches : 1> passing;
  const std::int64_t width = from.shape.width;
  const std::int64_t stride = from.shape.channels;
  // Columns [first, last) of the window lie inside the picture.
  const std::int64_t first = std::clamp<std::int64_t>(-view.left, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(from.size.width - view.left, first, width);
  for (std::int64_t y = 0; y < from.shape.height; ++y) {
    float* const row = way == Way::past_caches ? passing.data() : plane + y * width;
    const std::int64_t source_y = y + view.top;
    const std::uint8_t* const source = from.pixels + (source_y * from.size.width + first + view.left) * stride;
    if (first == last || source_y < 0 || source_y >= from.size.height) {
      std::fill_n(row, width, from.table[0]);
    } else if (view.mirrored) {
      std::fill_n(row, width - last, from.table[0]);
      look_up<-1>(source, stride, from.table, last - first, row + width - 1 - first);
      std::fill_n(row + width - first, first, from.table[0]);
    } else {
      std::fill_n(row, first, from.table[0]);
      look_up<1>(source, stride, from.table, last - first, row + first);
      std::fill_n(row + last, width - last, from.table[0]);
    }
    if (y >= view.erased.top && y < view.erased.top + view.erased.size.height) {
      std::fill_n(row + view.erased.left, view.erased.size.width, 0.0F);
    }
    if constexpr (way == Way::past_caches) write_past_caches(row, width, plane + y * width);
  }
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
  const bool goes_past = goes_past_caches(image, shape_.width);
  for (std::int64_t channel = 0; channel < shape_.channels; ++channel) {
    const Plane from{picture.pixels.data() + channel, picture.size, shape_,
                     std::span<const float, pixel_values>(
                         tables_.data() + channel * static_cast<std::int64_t>(pixel_values), pixel_values)};
    float* const to = image.data() + channel * plane;
    goes_past ? write_plane<Way::past_caches>(from, view, to) : write_plane<Way::through_caches>(from, view, to);
  }
  if (goes_past) _mm_sfence();  // before another thread is told of the image
}

}  // namespace lockstep
