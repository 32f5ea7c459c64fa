// Pooling. One thread per vector of the result, unless stated. Gradients are gathered, not scattered, so no two threads
// write the same element.
#pragma once

#include <cmath>

#include "device/cuda/layout/feature_map.hpp"
#include "device/ops.hpp"
#include "device/pool_window.hpp"

namespace lockstep::cuda {

// Window positions of the maxima of eight channels, one byte each.
struct ChannelPlaces {
  int at[vector_width];
};

LOCKSTEP_HOST_DEVICE inline ChannelPlaces load_places(const std::byte* array, std::int64_t vector) {
  const ByteWords words = reinterpret_cast<const ByteWords*>(array)[vector];
  ChannelPlaces places;
  for (int i = 0; i < vector_width; ++i) {
    places.at[i] = static_cast<int>((words.at[i / 4] >> (8 * (i % 4))) & 0xFFU);
  }
  return places;
}
LOCKSTEP_HOST_DEVICE inline void store_places(const ChannelPlaces& places, std::byte* array, std::int64_t vector) {
  ByteWords words{};
  for (int i = 0; i < vector_width; ++i) {
    words.at[i / 4] |= static_cast<std::uint32_t>(places.at[i]) << (8 * (i % 4));
  }
  reinterpret_cast<ByteWords*>(array)[vector] = words;
}

// One thread per vector of y.
template <DType dtype>
struct MaxPool {
  Pool2d pool;
  FeatureMap x;
  FeatureMap y;
  std::byte* winner;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place to = y.place_of(index);
    ChannelVector best;
    ChannelPlaces places{};
    for (float& value : best.at) value = -INFINITY;
    for (std::int64_t i = 0; i < pool.kernel; ++i) {
      const std::int64_t row = to.row * pool.stride - pool.padding + i;
      if (row < 0 || row >= x.height) continue;
      for (std::int64_t j = 0; j < pool.kernel; ++j) {
        const std::int64_t column = to.column * pool.stride - pool.padding + j;
        if (column < 0 || column >= x.width) continue;
        take_larger(load<dtype>(x.data, x.vector_at({to.image, row, column, to.group})),
                    static_cast<int>(i * pool.kernel + j), best, places);
      }
    }
    store<dtype>(best, y.data, index);
    store_places(places, winner, index);
  }

  // The first of equal values wins. NaN wins over all.
  LOCKSTEP_HOST_DEVICE static void take_larger(const ChannelVector& values, int place, ChannelVector& best,
                                               ChannelPlaces& places) {
    for (int i = 0; i < vector_width; ++i) {
      const bool is_better = !(values.at[i] <= best.at[i]) && best.at[i] == best.at[i];
      best.at[i] = is_better ? values.at[i] : best.at[i];
      places.at[i] = is_better ? place : places.at[i];
    }
  }
};

// Sums the gradients of all windows that cover a pixel. One thread per tile of stride x stride pixels, which few
// windows cover: tile t has the positions [t * stride, (t + 1) * stride) of a padded row, of which window w covers [w *
// stride, w * stride + kernel).
template <DType dtype>
struct MaxPoolGradient {
  Pool2d pool;
  FeatureMap dy;
  const std::byte* winner;
  FeatureMap dx;

  // 32 bits for places, which take half the registers.
  int kernel = static_cast<int>(pool.kernel);
  int stride = static_cast<int>(pool.stride);
  int padding = static_cast<int>(pool.padding);
  int reach = (kernel - 1) / stride;  // windows that cover a tile, besides its own
  // Of the tiles that have pixels.
  int first_tile = padding / stride;
  int tile_rows = tiles(dx.height);
  int tile_columns = tiles(dx.width);

  int tiles(std::int64_t size) const { return (static_cast<int>(size) - 1 + padding) / stride - first_tile + 1; }
  std::int64_t threads() const { return dx.images * tile_rows * tile_columns * dx.groups; }

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Division by_group = divide(index, dx.groups);
    const Division by_column = divide(by_group.quotient, tile_columns);
    const Division by_row = divide(by_column.quotient, tile_rows);
    const int tile_row = first_tile + static_cast<int>(by_row.remainder);
    const int tile_column = first_tile + static_cast<int>(by_column.remainder);
    const std::int64_t from = by_row.quotient * dy.pixels() * dy.groups + by_group.remainder;
    const std::int64_t to = by_row.quotient * dx.pixels() * dx.groups + by_group.remainder;
    for (int i = 0; i < stride; ++i) {
      const int row = tile_row * stride + i - padding;
      if (row < 0 || row >= dx.height) continue;
      const Windows rows = windows_over(tile_row, i, dy.height);
      for (int j = 0; j < stride; ++j) {
        const int column = tile_column * stride + j - padding;
        if (column < 0 || column >= dx.width) continue;
        store<dtype>(sum_over(rows, windows_over(tile_column, j, dy.width), from), dx.data,
                     to + (row * dx.width + column) * dx.groups);
      }
    }
  }

  // Windows over a pixel, and its place in the first of them. None: last < first.
  struct Windows {
    int first;
    int last;
    int place;
  };

  // For pixel `i` of a tile.
  LOCKSTEP_HOST_DEVICE Windows windows_over(int tile, int i, std::int64_t windows) const {
    const int earliest = tile - (reach * stride + i < kernel ? reach : reach - 1);
    const int first = earliest < 0 ? 0 : earliest;
    return {first, tile < windows ? tile : static_cast<int>(windows) - 1, (tile - first) * stride + i};
  }

  // `from`: the image's first vector of these channels.
  LOCKSTEP_HOST_DEVICE ChannelVector sum_over(const Windows& rows, const Windows& columns, std::int64_t from) const {
    ChannelVector sum{};
    for (int row = rows.first, i = rows.place; row <= rows.last; ++row, i -= stride) {
      for (int column = columns.first, j = columns.place; column <= columns.last; ++column, j -= stride) {
        const std::int64_t vector = from + (row * dy.width + column) * dy.groups;
        const ChannelPlaces places = load_places(winner, vector);
        const ChannelVector gradients = load<dtype>(dy.data, vector);
        const int place = i * kernel + j;
        for (int c = 0; c < vector_width; ++c) sum.at[c] += places.at[c] == place ? gradients.at[c] : 0;
      }
    }
    return sum;
  }
};

// One thread per vector of y.
template <DType dtype>
struct AveragePool {
  Pool2d pool;
  bool counts_padding;
  FeatureMap x;
  FeatureMap y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place to = y.place_of(index);
    ChannelVector sum{};
    for (std::int64_t i = 0; i < pool.kernel; ++i) {
      const std::int64_t row = to.row * pool.stride - pool.padding + i;
      if (row < 0 || row >= x.height) continue;
      for (std::int64_t j = 0; j < pool.kernel; ++j) {
        const std::int64_t column = to.column * pool.stride - pool.padding + j;
        if (column < 0 || column >= x.width) continue;
        const ChannelVector values = load<dtype>(x.data, x.vector_at({to.image, row, column, to.group}));
        for (int c = 0; c < vector_width; ++c) sum.at[c] += values.at[c];
      }
    }
    const std::int64_t count = counted_positions(pool, counts_padding, to.row, x.height) *
                               counted_positions(pool, counts_padding, to.column, x.width);
    for (float& value : sum.at) value /= static_cast<float>(count);
    store<dtype>(sum, y.data, index);
  }
};

// One thread per vector of dx.
template <DType dtype>
struct AveragePoolGradient {
  Pool2d pool;
  bool counts_padding;
  FeatureMap dy;
  FeatureMap dx;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place at = dx.place_of(index);
    ChannelVector sum{};
    const std::int64_t last_row = last_window_over(pool, at.row, dy.height);
    const std::int64_t last_column = last_window_over(pool, at.column, dy.width);
    for (std::int64_t row = first_window_over(pool, at.row); row <= last_row; ++row) {
      const std::int64_t rows = counted_positions(pool, counts_padding, row, dx.height);
      for (std::int64_t column = first_window_over(pool, at.column); column <= last_column; ++column) {
        const std::int64_t count = rows * counted_positions(pool, counts_padding, column, dx.width);
        const ChannelVector gradients = load<dtype>(dy.data, dy.vector_at({at.image, row, column, at.group}));
        for (int c = 0; c < vector_width; ++c) sum.at[c] += gradients.at[c] / static_cast<float>(count);
      }
    }
    store<dtype>(sum, dx.data, index);
  }
};

// One thread per vector of `to`. `from` holds every from_stride-th pixel of a plane that is zero elsewhere; `to` gets
// every to_stride-th pixel of the blurred plane. Forward and backward use the same kernel.
template <DType dtype>
struct Blur {
  std::int64_t from_stride;
  std::int64_t to_stride;
  FeatureMap from;
  FeatureMap to;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place at = to.place_of(index);
    ChannelVector sum{};
    for (int i = -1; i <= 1; ++i) {
      const std::int64_t row = given(at.row * to_stride + i, from.height);
      if (row < 0) continue;
      for (int j = -1; j <= 1; ++j) {
        const std::int64_t column = given(at.column * to_stride + j, from.width);
        if (column < 0) continue;
        const float weight = (i == 0 ? 2.0F : 1.0F) * (j == 0 ? 2.0F : 1.0F) / 16.0F;
        const ChannelVector values = load<dtype>(from.data, from.vector_at({at.image, row, column, at.group}));
        for (int c = 0; c < vector_width; ++c) sum.at[c] += weight * values.at[c];
      }
    }
    store<dtype>(sum, to.data, index);
  }

  // The row or column of `from` at a position of the plane; below 0: none.
  LOCKSTEP_HOST_DEVICE std::int64_t given(std::int64_t position, std::int64_t size) const {
    if (position < 0 || position % from_stride != 0 || position / from_stride >= size) return -1;
    return position / from_stride;
  }
};

// One thread per group of channels. y is plain [n, c].
template <DType dtype>
struct MeanPool {
  FeatureMap x;
  float* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [image, group] = divide(index, x.groups);
    const std::int64_t pixels = x.pixels();
    ChannelVector sum{};
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      const ChannelVector values = load<dtype>(x.data, (image * pixels + pixel) * x.groups + group);
      for (int i = 0; i < vector_width; ++i) sum.at[i] += values.at[i];
    }
    for (int i = 0; i < vector_width; ++i) {
      const std::int64_t channel = group * vector_width + i;
      if (channel < x.channels) y[image * x.channels + channel] = sum.at[i] / static_cast<float>(pixels);
    }
  }
};

// One thread per vector of dx.
template <DType dtype>
struct MeanPoolGradient {
  const float* dy;
  FeatureMap dx;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place at = dx.place_of(index);
    ChannelVector gradients = load_channels(dy + at.image * dx.channels, at.group, dx.channels);
    for (float& gradient : gradients.at) gradient /= static_cast<float>(dx.pixels());
    store<dtype>(gradients, dx.data, index);
  }
};

}  // namespace lockstep::cuda
