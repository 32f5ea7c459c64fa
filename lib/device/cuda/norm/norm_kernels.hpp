// Batch norm with residual and activation. Forward reads x twice, backward reads x and dy twice: the minimum for batch
// statistics. After a residual, backward stores dz, which is dy with the ReLU mask applied, in d_residual and rereads
// it from there. In that case forward also writes the ReLU mask as bits, a sixteenth of y's size in half precision.
//
// Each thread handles one group of eight channels and walks over rows (see channel_sums.hpp), so it loads the values of
// its channels once. Forward: SumMoments, FinishMoments, Normalize. Backward: SumNormGradients, FinishNormGradients,
// ComputeNormGradient. Formulas: Ioffe and Szegedy 2015.
#pragma once

#include <cmath>

#include "device/cuda/norm/channel_sums.hpp"

namespace lockstep::cuda {

// y = factor * x + offset for eight channels; both are zero in padding channels. Forward and backward compute the same
// bits, so backward can recompute the ReLU mask.
struct NormLine {
  ChannelVector factor;
  ChannelVector offset;

  LOCKSTEP_HOST_DEVICE float operator()(int i, float x) const { return fmaf(x, factor.at[i], offset.at[i]); }
};

// The parameters from which a NormLine is computed.
struct NormVectors {
  enum class Spread : std::uint8_t { inverse_deviation, variance };

  const float* scale;
  const float* shift;
  const float* mean;
  const float* spread_values;  // [channels]: variance or 1 / deviation, see `spread`
  Spread spread;
  float epsilon;
  std::int64_t channels;

  LOCKSTEP_HOST_DEVICE NormLine line(std::int64_t group) const {
    const ChannelVector scales = load_channels(scale, group, channels);
    const ChannelVector shifts = load_channels(shift, group, channels);
    const ChannelVector means = load_channels(mean, group, channels);
    const ChannelVector spreads = load_channels(spread_values, group, channels);
    NormLine line;
    for (int i = 0; i < vector_width; ++i) {
      const bool exists = group * vector_width + i < channels;
      const float inverse = spread == Spread::variance ? 1 / sqrtf(spreads.at[i] + epsilon) : spreads.at[i];
      line.factor.at[i] = exists ? scales.at[i] * inverse : 0.0F;
      line.offset.at[i] = exists ? fmaf(-means.at[i], line.factor.at[i], shifts.at[i]) : 0.0F;
    }
    return line;
  }
};

// From batch statistics, as forward saved them.
inline NormVectors saved_vectors(const NormWeights& weights, const NormSaved& saved, std::int64_t channels) {
  return {.scale = weights.scale.as<float>(),
          .shift = weights.shift.as<float>(),
          .mean = saved.mean.as<float>(),
          .spread_values = saved.inverse_deviation.as<float>(),
          .spread = NormVectors::Spread::inverse_deviation,
          .epsilon = weights.epsilon,
          .channels = channels};
}

// Partial sums of x - origin and of its square, per channel. The origin is a value of the channel; otherwise a mean far
// from zero would cancel the variance.
template <DType dtype>
struct SumMoments {
  using Sums = GroupSums<2, vector_width>;

  Slices slices;
  const std::byte* x;

  LOCKSTEP_HOST_DEVICE static std::int64_t origin_row(std::int64_t rows) { return rows / 2; }

  LOCKSTEP_HOST_DEVICE Sums operator()(std::int64_t slice, std::int64_t group) const {
    const ChannelVector origin = load<dtype>(x, origin_row(slices.rows) * slices.groups + group);
    Sums sums{};
    const auto load_row = [&](std::int64_t row) { return load_stored<dtype>(x, row * slices.groups + group); };
    for_rows<rows_at_once<dtype>>(slices, slice, load_row, [&](std::int64_t /*row*/, const auto& stored) {
      const ChannelVector values = widen_stored<dtype>(stored);
      for (int i = 0; i < vector_width; ++i) {
        const float moved = values.at[i] - origin.at[i];
        sums.at[0][i] += moved;
        sums.at[1][i] = fmaf(moved, moved, sums.at[1][i]);
      }
    });
    return sums;
  }
};

// Statistics from the sums of moments.
template <DType dtype>
struct FinishMoments {
  static constexpr int arrays = 2;

  Slices slices;
  const std::byte* x;
  float epsilon;
  float* mean;
  float* inverse_deviation;
  float* batch_mean;
  float* batch_variance;
  float statistics_scale;
  Accumulate accumulate;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t channel, const double* totals) const {
    const std::int64_t origin_vector =
        SumMoments<dtype>::origin_row(slices.rows) * slices.groups + channel / vector_width;
    const auto origin = static_cast<double>(load<dtype>(x, origin_vector).at[channel % vector_width]);
    const auto count = static_cast<double>(slices.rows);
    const double moved_mean = totals[0] / count;
    const double squares = totals[1] / count;
    const double difference = squares - moved_mean * moved_mean;
    const double variance = difference < 0 ? 0 : difference;  // NaN stays NaN
    const double unbiased = variance * count / (count > 1 ? count - 1 : 1);
    mean[channel] = static_cast<float>(origin + moved_mean);
    inverse_deviation[channel] = static_cast<float>(1 / sqrt(variance + static_cast<double>(epsilon)));
    const auto scale = static_cast<double>(statistics_scale);
    put(batch_mean + channel, (origin + moved_mean) * scale, accumulate);
    put(batch_variance + channel, unbiased * scale, accumulate);
  }
};

// The ReLU mask of these outputs: bit i for value i. NaN passes.
LOCKSTEP_HOST_DEVICE inline std::uint8_t relu_mask_byte(const ChannelVector& values) {
  unsigned bits = 0;
  for (int i = 0; i < vector_width; ++i) bits |= values.at[i] <= 0 ? 0U : 1U << i;
  return static_cast<std::uint8_t>(bits);
}

// y = activation(line of x (+ residual)).
template <DType dtype>
struct Normalize {
  Slices slices;
  NormVectors vectors;
  const std::byte* x;
  const std::byte* residual;  // may be null
  Activation activation;
  std::byte* y;
  std::uint8_t* relu_mask_bits;  // ReLU mask: one bit per channel of a group; may be null

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [slice, group] = divide(index, slices.groups);
    const NormLine line = vectors.line(group);
    struct Row {
      StoredVector<dtype> x;
      StoredVector<dtype> residual;
    };
    const auto load_row = [&, group = group](std::int64_t row) {
      const std::int64_t vector = row * slices.groups + group;
      return Row{load_stored<dtype>(x, vector),
                 residual == nullptr ? StoredVector<dtype>{} : load_stored<dtype>(residual, vector)};
    };
    for_rows<rows_at_once<dtype>>(slices, slice, load_row, [&, group = group](std::int64_t row, const Row& stored) {
      const std::int64_t vector = row * slices.groups + group;
      ChannelVector values = widen_stored<dtype>(stored.x);
      for (int i = 0; i < vector_width; ++i) values.at[i] = line(i, values.at[i]);
      if (residual != nullptr) {
        const ChannelVector other = widen_stored<dtype>(stored.residual);
        for (int i = 0; i < vector_width; ++i) values.at[i] += other.at[i];
      }
      if (activation == Activation::relu) {
        for (float& value : values.at) value = value < 0 ? 0 : value;  // NaN stays NaN
      }
      if (relu_mask_bits != nullptr) relu_mask_bits[vector] = relu_mask_byte(values);
      store<dtype>(values, y, vector);
    });
  }
};

// How backward gets the ReLU mask.
enum class ReluMask : std::uint8_t {
  open,       // no mask, or the input is dz already
  from_x,     // recomputed by the NormLine
  from_bits,  // read from the bits that forward wrote
};

// Partial sums of dz and of dz * (x - mean), per channel. Writes dz unless `dz` is null; it may be dy.
template <DType dtype>
struct SumNormGradients {
  using Sums = GroupSums<2, vector_width>;

  Slices slices;
  NormVectors vectors;
  ReluMask relu_mask;
  const std::byte* x;
  const std::uint8_t* relu_mask_bits;  // for ReluMask::from_bits
  const std::byte* dy;
  std::byte* dz;

  LOCKSTEP_HOST_DEVICE Sums operator()(std::int64_t slice, std::int64_t group) const {
    const NormLine line = vectors.line(group);
    const ChannelVector mean = load_channels(vectors.mean, group, vectors.channels);
    Sums sums{};
    struct Row {
      StoredVector<dtype> x;
      StoredVector<dtype> dy;
      unsigned bits;
    };
    const auto load_row = [&](std::int64_t row) {
      const std::int64_t vector = row * slices.groups + group;
      return Row{load_stored<dtype>(x, vector), load_stored<dtype>(dy, vector),
                 relu_mask == ReluMask::from_bits ? relu_mask_bits[vector] : 0U};
    };
    for_rows<rows_at_once<dtype>>(slices, slice, load_row, [&](std::int64_t row, const Row& stored) {
      const ChannelVector values = widen_stored<dtype>(stored.x);
      ChannelVector gradients = widen_stored<dtype>(stored.dy);
      if (relu_mask == ReluMask::from_bits) {
        for (int i = 0; i < vector_width; ++i) gradients.at[i] = (stored.bits >> i & 1U) != 0 ? gradients.at[i] : 0;
      } else if (relu_mask == ReluMask::from_x) {
        for (int i = 0; i < vector_width; ++i) gradients.at[i] = line(i, values.at[i]) <= 0 ? 0 : gradients.at[i];
      }
      if (dz != nullptr) store<dtype>(gradients, dz, row * slices.groups + group);
      for (int i = 0; i < vector_width; ++i) {
        sums.at[0][i] += gradients.at[i];
        sums.at[1][i] = fmaf(gradients.at[i], values.at[i] - mean.at[i], sums.at[1][i]);
      }
    });
    return sums;
  }
};

// Finishes the sums, for channels and padding. With u = (x - mean) / deviation: d_shift = sum dz,
// d_scale = sum dz * u, dx = scale / deviation * (dz - d_shift / count - u * d_scale / count).
struct FinishNormGradients {
  static constexpr int arrays = 2;

  std::int64_t rows;
  const float* inverse_deviation;
  std::int64_t channels;
  float* mean_dz;   // [padded channels]: d_shift / count
  float* x_factor;  // [padded channels]: factor of x - mean in the parenthesis
  float* d_scale;
  float* d_shift;
  Accumulate accumulate;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t channel, const double* totals) const {
    if (channel >= channels) {
      mean_dz[channel] = 0;
      x_factor[channel] = 0;
      return;
    }
    const auto count = static_cast<double>(rows);
    const auto inverse = static_cast<double>(inverse_deviation[channel]);
    const double shift_gradient = totals[0];
    const double scale_gradient = totals[1] * inverse;
    mean_dz[channel] = static_cast<float>(shift_gradient / count);
    x_factor[channel] = static_cast<float>(-inverse * scale_gradient / count);
    put(d_scale + channel, scale_gradient, accumulate);
    put(d_shift + channel, shift_gradient, accumulate);
  }
};

// dx from dz, or from dy with the ReLU mask. dx may be the array that dz is read from.
template <DType dtype>
struct ComputeNormGradient {
  Slices slices;
  NormVectors vectors;
  ReluMask relu_mask;  // open or from_x
  const std::byte* x;
  const std::byte* dz;
  const float* mean_dz;
  const float* x_factor;
  std::byte* dx;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [slice, group] = divide(index, slices.groups);
    const NormLine line = vectors.line(group);
    const ChannelVector mean = load_channels(vectors.mean, group, vectors.channels);
    const ChannelVector mean_gradient = load_channels(mean_dz, group, vectors.channels);
    const ChannelVector slope = load_channels(x_factor, group, vectors.channels);
    struct Row {
      StoredVector<dtype> x;
      StoredVector<dtype> dz;
    };
    const auto load_row = [&, group = group](std::int64_t row) {
      const std::int64_t vector = row * slices.groups + group;
      return Row{load_stored<dtype>(x, vector), load_stored<dtype>(dz, vector)};
    };
    for_rows<rows_at_once<dtype>>(slices, slice, load_row, [&, group = group](std::int64_t row, const Row& stored) {
      const ChannelVector values = widen_stored<dtype>(stored.x);
      ChannelVector gradients = widen_stored<dtype>(stored.dz);
      for (int i = 0; i < vector_width; ++i) {
        const bool is_shut = relu_mask == ReluMask::from_x && line(i, values.at[i]) <= 0;
        const float gradient = (is_shut ? 0 : gradients.at[i]) - mean_gradient.at[i];
        gradients.at[i] = line.factor.at[i] * fmaf(slope.at[i], values.at[i] - mean.at[i], gradient);
      }
      store<dtype>(gradients, dx, row * slices.groups + group);
    });
  }
};

}  // namespace lockstep::cuda
