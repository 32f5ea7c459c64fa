#include "picture/resize.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

constexpr std::int64_t channels = 3;
// Weights have 32 bits less 8 for the pixel and 2 for what a sum may overshoot.
constexpr int weight_bits = 32 - 8 - 2;
constexpr std::int32_t half = 1 << (weight_bits - 1);

// Which pixels of one axis of the box make each pixel of the result, and with which weights.
struct Weights {
  struct Range {
    std::int64_t first;  // from the box's first pixel
    std::int64_t count;
  };
  std::vector<Range> ranges;         // of each pixel of the result
  std::int64_t stride;               // places for weights of one
  std::vector<std::int32_t> values;  // [result, stride], sums near 1 << weight_bits
};

Weights triangle_weights(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  Weights weights{{}, static_cast<std::int64_t>(std::ceil(support)) * 2 + 1, {}};
  weights.ranges.resize(static_cast<std::size_t>(to));
  weights.values.assign(static_cast<std::size_t>(to * weights.stride), 0);
  std::vector<double> reals(static_cast<std::size_t>(weights.stride));
  for (std::int64_t pixel = 0; pixel < to; ++pixel) {
    const double centre = (static_cast<double>(pixel) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const auto count = std::min(static_cast<std::int64_t>(centre + support + 0.5), from) - first;
    double sum = 0;
    for (std::int64_t tap = 0; tap < count; ++tap) {
      const double distance = (static_cast<double>(tap + first) - centre + 0.5) * (1.0 / support);
      const double weight = std::max(1.0 - std::abs(distance), 0.0);
      reals[static_cast<std::size_t>(tap)] = weight;
      sum += weight;
    }
    weights.ranges[static_cast<std::size_t>(pixel)] = {first, count};
    for (std::int64_t tap = 0; tap < count; ++tap) {
      const double share = reals[static_cast<std::size_t>(tap)] * (1.0 / sum);
      weights.values[static_cast<std::size_t>(pixel * weights.stride + tap)] =
          static_cast<std::int32_t>(0.5 + share * (1 << weight_bits));
    }
  }
  return weights;
}

std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255)); }

// Rows of `from`, each `stride` bytes after the one before, to rows of `width` pixels one after another.
void resize_rows(const std::uint8_t* from, std::int64_t stride, std::int64_t rows, const Weights& weights,
                 std::int64_t width, std::uint8_t* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint8_t* const source = from + row * stride;
    for (std::int64_t column = 0; column < width; ++column) {
      const Weights::Range range = weights.ranges[static_cast<std::size_t>(column)];
      const std::int32_t* const weight = weights.values.data() + column * weights.stride;
      const std::uint8_t* const pixels = source + range.first * channels;
      std::int32_t red = half;
      std::int32_t green = half;
      std::int32_t blue = half;
      for (std::int64_t tap = 0; tap < range.count; ++tap) {
        red += pixels[tap * channels] * weight[tap];
        green += pixels[tap * channels + 1] * weight[tap];
        blue += pixels[tap * channels + 2] * weight[tap];
      }
      std::uint8_t* const target = to + (row * width + column) * channels;
      target[0] = rounded(red);
      target[1] = rounded(green);
      target[2] = rounded(blue);
    }
  }
}

// Rows one after another, [rows, row_bytes], to `height` of them.
void resize_columns(const std::uint8_t* from, std::int64_t row_bytes, const Weights& weights, std::int64_t height,
                    std::uint8_t* to) {
  std::vector<std::int32_t> sums(static_cast<std::size_t>(row_bytes));
  for (std::int64_t row = 0; row < height; ++row) {
    const Weights::Range range = weights.ranges[static_cast<std::size_t>(row)];
    std::ranges::fill(sums, half);
    for (std::int64_t tap = 0; tap < range.count; ++tap) {
      const std::int32_t weight = weights.values[static_cast<std::size_t>(row * weights.stride + tap)];
      const std::uint8_t* const source = from + (range.first + tap) * row_bytes;
      for (std::int64_t at = 0; at < row_bytes; ++at) sums[static_cast<std::size_t>(at)] += source[at] * weight;
    }
    std::uint8_t* const target = to + row * row_bytes;
    for (std::int64_t at = 0; at < row_bytes; ++at) target[at] = rounded(sums[static_cast<std::size_t>(at)]);
  }
}

}  // namespace

void resize(const Picture& picture, const PictureBox& box, const PictureSize& size, OwnedPicture& resized) {
  assert(box.top >= 0 && box.left >= 0 && box.size.height > 0 && box.size.width > 0);
  assert(box.top + box.size.height <= picture.size.height && box.left + box.size.width <= picture.size.width);
  assert(size.height > 0 && size.width > 0);
  const std::int64_t stride = picture.size.width * channels;
  const std::uint8_t* const corner = picture.pixels.data() + box.top * stride + box.left * channels;
  const std::int64_t row_bytes = size.width * channels;
  std::vector<std::uint8_t> narrow(static_cast<std::size_t>(box.size.height * row_bytes));
  if (size.width == box.size.width) {
    for (std::int64_t row = 0; row < box.size.height; ++row) {
      std::copy_n(corner + row * stride, row_bytes, narrow.data() + row * row_bytes);
    }
  } else {
    resize_rows(corner, stride, box.size.height, triangle_weights(box.size.width, size.width), size.width,
                narrow.data());
  }
  resized.size = size;
  if (size.height == box.size.height) {
    resized.pixels = std::move(narrow);
    return;
  }
  resized.pixels.resize(static_cast<std::size_t>(size.height * row_bytes));
  resize_columns(narrow.data(), row_bytes, triangle_weights(box.size.height, size.height), size.height,
                 resized.pixels.data());
}

PictureSize with_shorter_side(const PictureSize& size, std::int64_t side) {
  const auto longer = [&](std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(side * a / b, 1); };
  return size.height < size.width ? PictureSize{side, longer(size.width, size.height)}
                                  : PictureSize{longer(size.height, size.width), side};
}

PictureSize with_longest_side(const PictureSize& size, std::int64_t side) {
  const auto shorter = [&](std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(side * a / b, 1); };
  if (std::max(size.height, size.width) <= side) return size;
  return size.height < size.width ? PictureSize{shorter(size.height, size.width), side}
                                  : PictureSize{side, shorter(size.width, size.height)};
}

}  // namespace lockstep
