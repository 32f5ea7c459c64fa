// Definitions of KernelOps: each operation becomes a few launches of loop bodies (*_kernels.hpp). Passes over feature
// maps use one thread per vector of eight channels; sums use blocks (norm/channel_sums.hpp). Include only where
// KernelOps is instantiated.
#pragma once

#include <cassert>
#include <type_traits>

#include "device/cuda/norm/channel_sums.hpp"
#include "device/cuda/norm/norm_kernels.hpp"
#include "device/cuda/passes/bias_kernels.hpp"
#include "device/cuda/passes/elementwise_kernels.hpp"
#include "device/cuda/passes/kernel_ops.hpp"
#include "device/cuda/passes/loss_kernels.hpp"
#include "device/cuda/passes/pool_kernels.hpp"
#include "device/cuda/passes/shape_kernels.hpp"
#include "device/cuda/with_dtype.hpp"

namespace lockstep::cuda {

inline const float* floats(const Tensor& tensor) { return tensor ? tensor.as<float>() : nullptr; }
inline std::uint8_t* bits(const Tensor& relu_mask) { return relu_mask ? relu_mask.as<std::uint8_t>() : nullptr; }
inline std::int64_t padded_channels(const FeatureMap& map) { return map.groups * vector_width; }

template <typename Launch>
void KernelOps<Launch>::norm_forward(const Tensor& x_tensor, [[maybe_unused]] const Tensor& sums_of_x,
                                     const BatchNorm& norm, const Tensor& residual, Activation activation,
                                     const Tensor& y) {
  assert(!sums_of_x && norm.saved.group == nullptr);
  const FeatureMap x(x_tensor);
  const Slices slices = slices_for_sums(x.rows(), x.groups);
  with_dtype(x_tensor.dtype(), [&](auto dtype) {
    sum_channels(context_, launch_, SumMoments<dtype>{slices, x.data}, x.channels,
                 FinishMoments<dtype>{.slices = slices,
                                      .x = x.data,
                                      .epsilon = norm.weights.epsilon,
                                      .mean = norm.saved.mean.as<float>(),
                                      .inverse_deviation = norm.saved.inverse_deviation.as<float>(),
                                      .batch_mean = norm.batch_mean.as<float>(),
                                      .batch_variance = norm.batch_variance.as<float>(),
                                      .statistics_scale = norm.statistics_scale,
                                      .accumulate = norm.accumulate});
    const Slices walk = slices_for_elementwise(x.rows(), x.groups);
    launch_(walk.threads(), Normalize<dtype>{.slices = walk,
                                             .vectors = saved_vectors(norm.weights, norm.saved, x.channels),
                                             .x = x.data,
                                             .residual = residual.data(),
                                             .activation = activation,
                                             .y = y.data(),
                                             .relu_mask_bits = bits(norm.saved.relu_mask)});
  });
}

template <typename Launch>
void KernelOps<Launch>::norm_infer(const Tensor& x_tensor, const NormWeights& weights, const Tensor& running_mean,
                                   const Tensor& running_variance, const Tensor& residual, Activation activation,
                                   const Tensor& y) {
  const FeatureMap x(x_tensor);
  const Slices walk = slices_for_elementwise(x.rows(), x.groups);
  const NormVectors vectors{.scale = floats(weights.scale),
                            .shift = floats(weights.shift),
                            .mean = floats(running_mean),
                            .spread_values = floats(running_variance),
                            .spread = NormVectors::Spread::variance,
                            .epsilon = weights.epsilon,
                            .channels = x.channels};
  with_dtype(x_tensor.dtype(), [&](auto dtype) {
    launch_(walk.threads(), Normalize<dtype>{.slices = walk,
                                             .vectors = vectors,
                                             .x = x.data,
                                             .residual = residual.data(),
                                             .activation = activation,
                                             .y = y.data(),
                                             .relu_mask_bits = nullptr});
  });
}

template <typename Launch>
void KernelOps<Launch>::norm_backward(const Tensor& x_tensor, const Tensor& /*y*/, const Tensor& dy,
                                      const NormWeights& weights, Activation activation, const NormSaved& saved,
                                      const Tensor& dx, const Tensor& d_residual, const Tensor& d_scale,
                                      const Tensor& d_shift, Accumulate accumulate) {
  const FeatureMap x(x_tensor);
  const bool is_relu = activation == Activation::relu;
  assert(!(is_relu && d_residual) || saved.relu_mask);
  const Slices slices = slices_for_sums(x.rows(), x.groups);
  const NormVectors vectors = saved_vectors(weights, saved, x.channels);
  const Tensor rows = scratch(context_, 2 * padded_channels(x));
  float* const mean_dz = rows.as<float>();
  float* const x_factor = mean_dz + padded_channels(x);
  const bool writes_dz = d_residual && (is_relu || d_residual.data() != dy.data());
  with_dtype(x_tensor.dtype(), [&](auto dtype) {
    const SumNormGradients<dtype> sums{.slices = slices,
                                       .vectors = vectors,
                                       .relu_mask = !is_relu     ? ReluMask::open
                                                    : d_residual ? ReluMask::from_bits
                                                                 : ReluMask::from_x,
                                       .x = x.data,
                                       .relu_mask_bits = bits(saved.relu_mask),
                                       .dy = dy.data(),
                                       .dz = writes_dz ? d_residual.data() : nullptr};
    sum_channels(context_, launch_, sums, padded_channels(x),
                 FinishNormGradients{.rows = slices.rows,
                                     .inverse_deviation = floats(saved.inverse_deviation),
                                     .channels = x.channels,
                                     .mean_dz = mean_dz,
                                     .x_factor = x_factor,
                                     .d_scale = d_scale.as<float>(),
                                     .d_shift = d_shift.as<float>(),
                                     .accumulate = accumulate});
    const Slices walk = slices_for_elementwise(x.rows(), x.groups);
    launch_(walk.threads(),
            ComputeNormGradient<dtype>{.slices = walk,
                                       .vectors = vectors,
                                       .relu_mask = is_relu && !d_residual ? ReluMask::from_x : ReluMask::open,
                                       .x = x.data,
                                       .dz = d_residual ? d_residual.data() : dy.data(),
                                       .mean_dz = mean_dz,
                                       .x_factor = x_factor,
                                       .dx = dx.data()});
  });
}

// One byte per pixel and group of eight channels.
template <typename Launch>
std::int64_t KernelOps<Launch>::relu_mask_bytes(const Shape& y) const {
  static_assert(vector_width == 8);
  return y.count() / y[3] * (padded(y[3]) / vector_width);
}

template <typename Launch>
void KernelOps<Launch>::bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y) {
  if (x.layout() == Layout::plain) {
    launch_(x.shape().count(), AddPlainBias{floats(x), floats(bias), x.shape()[1], activation, y.as<float>()});
    return;
  }
  const FeatureMap map(x);
  const Slices walk = slices_for_elementwise(map.rows(), map.groups);
  with_dtype(x.dtype(), [&](auto dtype) {
    launch_(walk.threads(), AddBias<dtype>{.slices = walk,
                                           .x = map.data,
                                           .bias = floats(bias),
                                           .channels = map.channels,
                                           .activation = activation,
                                           .y = y.data()});
  });
}

template <typename Launch>
void KernelOps<Launch>::bias_backward(const Tensor& y, const Tensor& dy, Activation activation, const Tensor& dx,
                                      const Tensor& d_bias, Accumulate accumulate) {
  const FinishSums finish{1, d_bias.as<float>(), accumulate};
  if (dy.layout() == Layout::plain) {
    const Slices slices = slices_for_sums(dy.shape()[0], dy.shape()[1]);
    sum_channels(context_, launch_, SumPlainBiasGradients{slices, floats(y), floats(dy), activation, dx.as<float>()},
                 slices.groups, finish);
    return;
  }
  const FeatureMap map(dy);
  const Slices slices = slices_for_sums(map.rows(), map.groups);
  with_dtype(dy.dtype(), [&](auto dtype) {
    sum_channels(context_, launch_, SumBiasGradients<dtype>{slices, y.data(), dy.data(), activation, dx.data()},
                 map.channels, finish);
  });
}

template <typename Launch>
void KernelOps<Launch>::activate_forward(const Curve& curve, const Tensor& x, const Tensor& y) {
  if (x.layout() == Layout::plain) {
    launch_(x.shape().count(), ActivatePlain{curve, floats(x), y.as<float>()});
    return;
  }
  with_dtype(x.dtype(), [&](auto dtype) {
    const FeatureMap map(x);
    launch_(map.vectors(), Activate<dtype>{curve, map, y.data()});
  });
}

template <typename Launch>
void KernelOps<Launch>::activate_backward(const Curve& curve, const Tensor& saved, const Tensor& dy, const Tensor& dx) {
  if (saved.layout() == Layout::plain) {
    launch_(saved.shape().count(), ActivateGradientPlain{curve, floats(saved), floats(dy), dx.as<float>()});
    return;
  }
  with_dtype(saved.dtype(), [&](auto dtype) {
    launch_(FeatureMap(saved).vectors(), ActivateGradient<dtype>{curve, saved.data(), dy.data(), dx.data()});
  });
}

template <typename Launch>
void KernelOps<Launch>::drop(const Dropout& dropout, const Tensor& x, const Tensor& y) {
  const DropoutDraws draws{dropout.layer, dropout.ratio, floats(dropout.key), x.shape()[x.shape().ndim - 1]};
  if (x.layout() == Layout::plain) {
    launch_(x.shape()[0] * draws.quads(), DropPlain{draws, floats(x), y.as<float>()});
    return;
  }
  with_dtype(x.dtype(), [&](auto dtype) {
    const FeatureMap map(x);
    launch_(map.vectors(), Drop<dtype>{draws, map, y.data()});
  });
}

template <typename Launch>
void KernelOps<Launch>::add(const Tensor& a, const Tensor& b, const Tensor& y) {
  assert(a.shape() == y.shape() && b.shape() == y.shape());
  if (y.layout() == Layout::plain) {
    launch_(y.shape().count(), AddPlain{floats(a), floats(b), y.as<float>()});
    return;
  }
  with_dtype(y.dtype(), [&](auto dtype) {
    launch_(FeatureMap(y).vectors(), Add<dtype>{a.data(), b.data(), y.data()});
  });
}

template <typename Launch>
void KernelOps<Launch>::copy(const Tensor& x, const Tensor& y) {
  if (y.layout() == Layout::plain) {
    launch_(y.shape().count(), CopyPlain{floats(x), y.as<float>()});
    return;
  }
  with_dtype(y.dtype(), [&](auto dtype) { launch_(FeatureMap(y).vectors(), Copy<dtype>{x.data(), y.data()}); });
}

template <typename Launch>
void KernelOps<Launch>::max_pool_forward(const Pool2d& pool, const Tensor& x, const Tensor& y, const Tensor& winner) {
  assert(pool.kernel * pool.kernel <= 256);  // window positions fit in u8
  const FeatureMap to(y);
  with_dtype(x.dtype(), [&](auto dtype) {
    launch_(to.vectors(), MaxPool<dtype>{pool, FeatureMap(x), to, winner.data()});
  });
}

template <typename Launch>
void KernelOps<Launch>::max_pool_backward(const Pool2d& pool, const Tensor& dy, const Tensor& winner,
                                          const Tensor& dx) {
  with_dtype(dx.dtype(), [&](auto dtype) {
    const MaxPoolGradient<dtype> gradient{pool, FeatureMap(dy), winner.data(), FeatureMap(dx)};
    launch_(gradient.threads(), gradient);
  });
}

template <typename Launch>
void KernelOps<Launch>::average_pool_forward(const Pool2d& pool, bool counts_padding, const Tensor& x,
                                             const Tensor& y) {
  const FeatureMap to(y);
  with_dtype(x.dtype(), [&](auto dtype) {
    launch_(to.vectors(), AveragePool<dtype>{pool, counts_padding, FeatureMap(x), to});
  });
}

template <typename Launch>
void KernelOps<Launch>::average_pool_backward(const Pool2d& pool, bool counts_padding, const Tensor& dy,
                                              const Tensor& dx) {
  const FeatureMap to(dx);
  with_dtype(dx.dtype(), [&](auto dtype) {
    launch_(to.vectors(), AveragePoolGradient<dtype>{pool, counts_padding, FeatureMap(dy), to});
  });
}

template <typename Launch>
void KernelOps<Launch>::blur_forward(std::int64_t stride, const Tensor& x, const Tensor& y) {
  const FeatureMap to(y);
  assert(y.shape()[1] == (x.shape()[1] + stride - 1) / stride);
  with_dtype(x.dtype(), [&](auto dtype) { launch_(to.vectors(), Blur<dtype>{1, stride, FeatureMap(x), to}); });
}

template <typename Launch>
void KernelOps<Launch>::blur_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) {
  const FeatureMap to(dx);
  with_dtype(dx.dtype(), [&](auto dtype) { launch_(to.vectors(), Blur<dtype>{stride, 1, FeatureMap(dy), to}); });
}

template <typename Launch>
void KernelOps<Launch>::mean_pool_forward(const Tensor& x, const Tensor& y) {
  const FeatureMap from(x);
  with_dtype(x.dtype(), [&](auto dtype) { launch_(from.images * from.groups, MeanPool<dtype>{from, y.as<float>()}); });
}

template <typename Launch>
void KernelOps<Launch>::mean_pool_backward(const Tensor& dy, const Tensor& dx) {
  const FeatureMap to(dx);
  with_dtype(dx.dtype(), [&](auto dtype) { launch_(to.vectors(), MeanPoolGradient<dtype>{floats(dy), to}); });
}

template <typename Launch>
void KernelOps<Launch>::flatten_forward(const Tensor& x, const Tensor& y) {
  const FeatureMap from(x);
  with_dtype(x.dtype(), [&](auto dtype) { launch_(from.vectors(), Flatten<dtype>{from, y.as<float>()}); });
}

template <typename Launch>
void KernelOps<Launch>::flatten_backward(const Tensor& dy, const Tensor& dx) {
  const FeatureMap to(dx);
  with_dtype(dx.dtype(), [&](auto dtype) { launch_(to.vectors(), Unflatten<dtype>{floats(dy), to}); });
}

// In the order of channels: a copy completes the last vector of the one before it.
template <typename Launch>
void KernelOps<Launch>::concat_forward(std::span<const Tensor> x, const Tensor& y) {
  with_dtype(y.dtype(), [&](auto dtype) {
    std::int64_t channel = 0;
    for (const Tensor& one : x) {
      const CopyChannels<dtype> copies{FeatureMap(one), 0, FeatureMap(y), channel, one.shape()[3]};
      launch_(copies.threads(), copies);
      channel += one.shape()[3];
    }
  });
}

template <typename Launch>
void KernelOps<Launch>::concat_backward(const Tensor& dy, std::span<const Tensor> dx) {
  with_dtype(dy.dtype(), [&](auto dtype) {
    std::int64_t channel = 0;
    for (const Tensor& one : dx) {
      const CopyChannels<dtype> copies{FeatureMap(dy), channel, FeatureMap(one), 0, one.shape()[3]};
      launch_(copies.threads(), copies);
      channel += one.shape()[3];
    }
  });
}

template <typename Launch>
void KernelOps<Launch>::mirror(const Tensor& x, const Tensor& y) {
  assert(x.layout() == Layout::images && y.layout() == Layout::images && x.shape() == y.shape());
  const FeatureMap to(y);
  with_dtype(y.dtype(), [&](auto dtype) { launch_(to.vectors(), Mirror<dtype>{FeatureMap(x), to}); });
}

template <typename Launch>
void KernelOps<Launch>::shift(std::int64_t rows, std::int64_t columns, const Tensor& x, const Tensor& y) {
  assert(x.layout() == Layout::images && y.layout() == Layout::images && x.shape() == y.shape());
  const FeatureMap to(y);
  with_dtype(y.dtype(), [&](auto dtype) { launch_(to.vectors(), Shift<dtype>{rows, columns, FeatureMap(x), to}); });
}

template <typename Launch>
void KernelOps<Launch>::subsample_forward(std::int64_t stride, const Tensor& x, const Tensor& y) {
  const FeatureMap to(y);
  assert(y.shape()[3] >= x.shape()[3] && y.shape()[1] == (x.shape()[1] + stride - 1) / stride);
  with_dtype(x.dtype(), [&](auto dtype) { launch_(to.vectors(), Subsample<dtype>{stride, FeatureMap(x), to}); });
}

template <typename Launch>
void KernelOps<Launch>::subsample_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) {
  const FeatureMap to(dx);
  with_dtype(dx.dtype(), [&](auto dtype) {
    launch_(to.vectors(), SubsampleGradient<dtype>{stride, FeatureMap(dy), to});
  });
}

template <typename Launch>
void KernelOps<Launch>::softmax_cross_entropy(const Tensor& logits, const Targets& targets, float smoothing,
                                              float scale, const LogitsGradient& gradient, const LossSums& sums,
                                              Accumulate accumulate) {
  const std::int64_t samples = logits.shape()[0];
  const LossOperands operands{floats(logits),
                              targets.labels.as<std::int32_t>(),
                              targets.others ? targets.others.as<std::int32_t>() : nullptr,
                              targets.shares ? targets.shares.as<float>() : nullptr,
                              logits.shape()[1],
                              smoothing,
                              scale};
  const Tensor log_sums = scratch(context_, 2 * samples);
  const Tensor sample_sums = scratch(context_, 2 * samples);
  const std::int64_t lanes = loss_lanes(operands.classes);
  const Tensor parts = scratch(context_, samples * lanes * std::int64_t{sizeof(RowPart) / sizeof(float)});
  auto* const row_parts = reinterpret_cast<RowPart*>(parts.data());
  launch_(samples * lanes, ComputeRowParts{operands, lanes, row_parts});
  launch_(samples, ComputeSampleLoss{operands, lanes, row_parts, log_sums.as<float>(), sample_sums.as<float>()});
  if (gradient.d_logits) {
    const float* const loss_scale = gradient.loss_scale ? gradient.loss_scale.as<float>() : nullptr;
    launch_(logits.shape().count(),
            LossGradient{operands, loss_scale, log_sums.as<float>(), gradient.d_logits.as<float>()});
  }
  const auto total = [&](std::int64_t which, double factor, const Tensor& target) {
    launch_.in_blocks(1,
                      FinishInBlocks<FinishSums>{
                          {sample_sums.as<float>() + which, 2, samples}, 1, {factor, target.as<float>(), accumulate}});
  };
  total(0, static_cast<double>(scale), sums.loss);
  total(1, 1, sums.correct);
}

}  // namespace lockstep::cuda
