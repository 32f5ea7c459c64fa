// Folding: each block of 2x2 pixels becomes one pixel of sixteen channels, four for each pixel of the block, row by
// row. One thread per vector that is written.
#pragma once

#include "device/cuda/layout/feature_map.hpp"
#include "device/ops.hpp"

namespace lockstep::cuda {

constexpr std::int64_t fold = 2;           // pixels of a block in each dimension
constexpr std::int64_t fold_channels = 4;  // of each pixel; a vector of eight holds a row of a block
static_assert(fold * fold_channels == vector_width);

// Block (r, c) of `to` starts at pixel (2r - padding, 2c - padding) of `from`, which has at most four channels in half
// precision. Pixels beyond `from` are zero.
struct FoldPixels {
  FeatureMap from;
  std::int64_t padding;
  FeatureMap to;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place at = to.place_of(index);
    const std::int64_t row = at.row * fold - padding + at.group;
    const std::int64_t column = at.column * fold - padding;
    const HalfWords left = pixel(at.image, row, column);
    const HalfWords right = pixel(at.image, row, column + 1);
    reinterpret_cast<HalfWords*>(to.data)[index] = {left.at[0], left.at[1], right.at[0], right.at[1]};
  }

  LOCKSTEP_HOST_DEVICE HalfWords pixel(std::int64_t image, std::int64_t row, std::int64_t column) const {
    if (row < 0 || row >= from.height || column < 0 || column >= from.width) return {};
    return reinterpret_cast<const HalfWords*>(from.data)[from.vector_at({image, row, column, 0})];
  }
};

// weight (+)= the pixels of the blocks in `from`, without padding.
template <DType dtype>
struct UnfoldWeight {
  FeatureMap from;
  FeatureMap weight;  // fp32
  Accumulate accumulate;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Place at = weight.place_of(index);
    const ChannelVector row =
        load<dtype>(from.data, from.vector_at({at.image, at.row / fold, at.column / fold, at.row % fold}));
    ChannelVector sum{};
    if (accumulate == Accumulate::add) sum = load<DType::f32>(weight.data, index);
    for (int i = 0; i < fold_channels; ++i) {
      sum.at[i] += at.column % fold == 0 ? row.at[i] : row.at[fold_channels + i];
    }
    store<DType::f32>(sum, weight.data, index);
  }
};

}  // namespace lockstep::cuda
