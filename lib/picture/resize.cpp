#include "picture/resize.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <memory>

namespace lockstep {
namespace {

constexpr std::int64_t channels = 3;
// 32 bits, less 8 for the pixel and 2 because sums can overshoot.
constexpr int weight_bits = 32 - 8 - 2;
constexpr std::int32_t half = 1 << (weight_bits - 1);

// A request for one axis: `length` source pixels from `start` become `result` pixels, of which those in the window are
// computed.
struct AxisRequest {
  double start;
  double length;
  std::int64_t result;
  std::int64_t window_first;
  std::int64_t window_count;
};

Resampler::Axis triangle_weights(const AxisRequest& request) {
  const double scale = request.length / static_cast<double>(request.result);
  const double support = std::max(scale, 1.0);
  // Coordinates relative to the first pixel that the box touches, so that the arithmetic equals that of a cropped
  // picture.
  const double origin = std::floor(request.start);
  const double start = request.start - origin;
  const auto end = static_cast<std::int64_t>(std::ceil(start + request.length));
  Resampler::Axis axis;
  axis.stride = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  axis.ranges.resize(static_cast<std::size_t>(request.window_count));
  axis.weights.assign(static_cast<std::size_t>(request.window_count * axis.stride), 0);
  std::vector<double> reals(static_cast<std::size_t>(axis.stride));
  // NOLINTBEGIN(bugprone-incorrect-roundings): Pillow cuts off after it has added a half
  for (std::int64_t pixel = 0; pixel < request.window_count; ++pixel) {
    const double centre = start + (static_cast<double>(request.window_first + pixel) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const auto count = std::min(static_cast<std::int64_t>(centre + support + 0.5), end) - first;
    double sum = 0;
    for (std::int64_t tap = 0; tap < count; ++tap) {
      const double distance = (static_cast<double>(tap + first) - centre + 0.5) * (1.0 / support);
      const double weight = std::max(1.0 - std::abs(distance), 0.0);
      reals[static_cast<std::size_t>(tap)] = weight;
      sum += weight;
    }
    std::int32_t* const weights = axis.weights.data() + pixel * axis.stride;
    for (std::int64_t tap = 0; tap < count; ++tap) {
      weights[tap] =
          static_cast<std::int32_t>(0.5 + reals[static_cast<std::size_t>(tap)] * (1.0 / sum) * (1 << weight_bits));
    }
    axis.ranges[static_cast<std::size_t>(pixel)] = {first, count};
  }
  // NOLINTEND(bugprone-incorrect-roundings)
  // Drops trailing source pixels whose weight is zero.
  for (std::int64_t pixel = 0; pixel < request.window_count; ++pixel) {
    std::int64_t& count = axis.ranges[static_cast<std::size_t>(pixel)].count;
    while (count > 1 && axis.weights[static_cast<std::size_t>(pixel * axis.stride + count - 1)] == 0) --count;
  }
  const std::int64_t first = axis.ranges.front().first;
  for (Resampler::Axis::Range& range : axis.ranges) {
    axis.count = std::max(axis.count, range.first + range.count - first);
    range.first -= first;
  }
  axis.first = static_cast<std::int64_t>(origin) + first;
  axis.copies = scale == 1.0 && start == 0;
  return axis;
}

// Bytes weighted at once: a multiple of the vector size of every instruction set.
constexpr std::int64_t block = 64;
std::int64_t blocks_of(std::int64_t bytes) { return (bytes + block - 1) / block; }

struct Pixels {
  std::int64_t first;
  std::int64_t end;
};

// Weighted sums of columns of bytes. Input: `from` has one line of `blocks` blocks for each source pixel of the axis.
// Output: `to` has one such line for each of the `pixels` output pixels.
//
// No sum exceeds a byte: weights are positive and sum to 1 << 22, except for rounding.
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void weigh_lines(const std::uint8_t* from,
                                                                                       const Resampler::Axis& axis,
                                                                                       const Pixels& pixels,
                                                                                       std::int64_t blocks,
                                                                                       std::uint8_t* to) {
  const std::int64_t line = blocks * block;
  for (std::int64_t pixel = pixels.first; pixel < pixels.end; ++pixel) {
    const Resampler::Axis::Range range = axis.ranges[static_cast<std::size_t>(pixel)];
    const std::int32_t* const weights = axis.weights.data() + pixel * axis.stride;
    const std::uint8_t* const source = from + range.first * line;
    std::uint8_t* const target = to + (pixel - pixels.first) * line;
    for (std::int64_t at = 0; at < line; at += block) {
      std::array<std::int32_t, block> sums;
      sums.fill(half);
      for (std::int64_t tap = 0; tap < range.count; ++tap) {
        const std::uint8_t* const bytes = source + tap * line + at;
        const std::int32_t weight = weights[tap];
        for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += bytes[lane] * weight;
      }
      for (std::size_t lane = 0; lane < sums.size(); ++lane) {
        target[at + static_cast<std::int64_t>(lane)] = static_cast<std::uint8_t>(sums[lane] >> weight_bits);
      }
    }
  }
}

constexpr std::int64_t pixel_room = 4;  // bytes moved per pixel; includes one byte of its neighbor
constexpr std::int64_t rows_at_once = block / pixel_room;

// Tiles of 4 rows x 4 pixels are transposed in registers.
constexpr std::int64_t square_side = 4;
constexpr std::int64_t vector_bytes = 16;
using Bytes = std::uint8_t __attribute__((vector_size(vector_bytes)));
using Words = std::uint32_t __attribute__((vector_size(vector_bytes)));

// Spreads four pixels of 3 bytes to four 32-bit words.
[[gnu::always_inline]] inline Words spread(Bytes pixels) {
  return reinterpret_cast<Words>(
      __builtin_shufflevector(pixels, pixels, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12));
}

// The inverse of spread().
[[gnu::always_inline]] inline Bytes closed_up(Words words) {
  const auto bytes = reinterpret_cast<Bytes>(words);
  return __builtin_shufflevector(bytes, bytes, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15);
}

[[gnu::always_inline]] inline void turn(std::array<Words, square_side>& square) {
  const Words low_01 = __builtin_shufflevector(square[0], square[1], 0, 4, 1, 5);
  const Words high_01 = __builtin_shufflevector(square[0], square[1], 2, 6, 3, 7);
  const Words low_23 = __builtin_shufflevector(square[2], square[3], 0, 4, 1, 5);
  const Words high_23 = __builtin_shufflevector(square[2], square[3], 2, 6, 3, 7);
  square[0] = __builtin_shufflevector(low_01, low_23, 0, 1, 4, 5);
  square[1] = __builtin_shufflevector(low_01, low_23, 2, 3, 6, 7);
  square[2] = __builtin_shufflevector(high_01, high_23, 0, 1, 4, 5);
  square[3] = __builtin_shufflevector(high_01, high_23, 2, 3, 6, 7);
}

// Transposes up to rows_at_once rows of `pixels` pixels, `row_bytes` apart, into columns of one block each.
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void turn_into_columns(
    const std::uint8_t* from, std::int64_t row_bytes, std::int64_t rows, std::int64_t pixels, std::uint8_t* columns) {
  for (std::int64_t row = 0; row < rows; row += square_side) {
    const std::uint8_t* const source = from + row * row_bytes;
    std::uint8_t* const column = columns + row * pixel_room;
    std::int64_t x = 0;
    // Reads no byte after the last pixel, because the file may end there.
    for (; row + square_side <= rows && x * channels + vector_bytes <= pixels * channels; x += square_side) {
      std::array<Words, square_side> square;
      for (std::int64_t i = 0; i < square_side; ++i) {
        Bytes bytes;
        std::memcpy(&bytes, source + i * row_bytes + x * channels, sizeof bytes);
        square[i] = spread(bytes);
      }
      turn(square);
      for (std::int64_t i = 0; i < square_side; ++i) std::memcpy(column + (x + i) * block, &square[i], sizeof(Words));
    }
    for (; x < pixels; ++x) {
      const std::size_t bytes = x + 1 < pixels ? pixel_room : channels;
      for (std::int64_t i = 0; i < std::min(square_side, rows - row); ++i) {
        std::memcpy(column + x * block + i * pixel_room, source + i * row_bytes + x * channels, bytes);
      }
    }
  }
}

// The inverse. Rows are `line` bytes apart, at least one byte more than their pixels need.
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void turn_into_rows(
    const std::uint8_t* columns, std::int64_t rows, std::int64_t pixels, std::uint8_t* to, std::int64_t line) {
  for (std::int64_t row = 0; row < rows; row += square_side) {
    const std::uint8_t* const column = columns + row * pixel_room;
    std::uint8_t* const target = to + row * line;
    std::int64_t x = 0;
    // Each pixel overwrites the excess byte of the one before it.
    for (; row + square_side <= rows && x + square_side <= pixels && x * channels + vector_bytes <= line;
         x += square_side) {
      std::array<Words, square_side> square;
      for (std::int64_t i = 0; i < square_side; ++i) std::memcpy(&square[i], column + (x + i) * block, sizeof(Words));
      turn(square);
      for (std::int64_t i = 0; i < square_side; ++i) {
        const Bytes bytes = closed_up(square[i]);
        std::memcpy(target + i * line + x * channels, &bytes, sizeof bytes);
      }
    }
    for (; x < pixels; ++x) {
      for (std::int64_t i = 0; i < std::min(square_side, rows - row); ++i) {
        std::memcpy(target + i * line + x * channels, column + x * block + i * pixel_room, pixel_room);
      }
    }
  }
}

// Resamples rows to axis.ranges.size() pixels each. Output rows are `line` bytes apart, at least one byte more than
// their pixels need. Rows are transposed in groups into columns, the layout of weigh_lines(), and back.
void resample_rows(const std::uint8_t* from, std::int64_t row_bytes, std::int64_t rows, const Resampler::Axis& axis,
                   std::uint8_t* to, std::int64_t line) {
  const auto width = static_cast<std::int64_t>(axis.ranges.size());
  const auto columns = std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(axis.count * block));
  const auto results = std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(width * block));
  for (std::int64_t first = 0; first < rows; first += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, rows - first);
    turn_into_columns(from + first * row_bytes, row_bytes, count, axis.count, columns.get());
    weigh_lines(columns.get(), axis, {0, width}, 1, results.get());
    turn_into_rows(results.get(), count, width, to + first * line, line);
  }
}

AxisRequest request_of(std::int64_t start, std::int64_t length, std::int64_t result, int reduction,
                       std::int64_t window_first, std::int64_t window_count) {
  assert(start >= 0 && length > 0 && window_first >= 0 && window_count > 0 && window_first + window_count <= result);
  const auto of_reduced = [&](std::int64_t value) { return static_cast<double>(value) / reduction; };
  return {of_reduced(start), of_reduced(length), result, window_first, window_count};
}

}  // namespace

Resampler::Resampler(const Resampling& resampling, const PictureBox& window, int reduction)
    : rows_(triangle_weights(request_of(resampling.box.top, resampling.box.size.height, resampling.size.height,
                                        reduction, window.top, window.size.height))),
      columns_(triangle_weights(request_of(resampling.box.left, resampling.box.size.width, resampling.size.width,
                                           reduction, window.left, window.size.width))) {}

PictureBox Resampler::source() const { return {rows_.first, columns_.first, {rows_.count, columns_.count}}; }

void Resampler::resample(const std::uint8_t* corner, std::int64_t row_bytes, OwnedPicture& result) const {
  result.size = {static_cast<std::int64_t>(rows_.ranges.size()), static_cast<std::int64_t>(columns_.ranges.size())};
  const std::int64_t result_bytes = result.size.width * channels;
  result.pixels.resize(static_cast<std::size_t>(result.size.height * result_bytes));
  const std::int64_t line = blocks_of(result_bytes + 1) * block;
  const auto narrow = std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(rows_.count * line));
  if (columns_.copies) {
    for (std::int64_t row = 0; row < rows_.count; ++row) {
      std::copy_n(corner + row * row_bytes, result_bytes, narrow.get() + row * line);
    }
  } else {
    resample_rows(corner, row_bytes, rows_.count, columns_, narrow.get(), line);
  }
  std::vector<std::uint8_t> low(static_cast<std::size_t>(line));
  for (std::int64_t row = 0; row < result.size.height; ++row) {
    if (!rows_.copies) weigh_lines(narrow.get(), rows_, {row, row + 1}, line / block, low.data());
    std::copy_n(rows_.copies ? narrow.get() + row * line : low.data(), result_bytes,
                result.pixels.data() + row * result_bytes);
  }
}

void resize(const Picture& picture, const Resampling& resampling, OwnedPicture& resized) {
  resize(picture, resampling, {0, 0, resampling.size}, resized);
}

void resize(const Picture& picture, const Resampling& resampling, const PictureBox& window, OwnedPicture& resized) {
  const Resampler resampler(resampling, window);
  const PictureBox source = resampler.source();
  assert(source.top + source.size.height <= picture.size.height);
  assert(source.left + source.size.width <= picture.size.width);
  const std::int64_t row_bytes = picture.size.width * channels;
  resampler.resample(picture.pixels.data() + source.top * row_bytes + source.left * channels, row_bytes, resized);
}

PictureSize covering(const PictureSize& size, const PictureSize& least) {
  return size.height * least.width < size.width * least.height
             ? PictureSize{least.height, least.height * size.width / size.height}
             : PictureSize{least.width * size.height / size.width, least.width};
}

PictureSize with_shorter_side(const PictureSize& size, std::int64_t side) { return covering(size, {side, side}); }

PictureSize with_longest_side(const PictureSize& size, std::int64_t side) {
  const auto shorter = [&](std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(side * a / b, 1); };
  if (std::max(size.height, size.width) <= side) return size;
  return size.height < size.width ? PictureSize{shorter(size.height, size.width), side}
                                  : PictureSize{side, shorter(size.width, size.height)};
}

}  // namespace lockstep
