#include "device/cpu/norm.hpp"

#include <cmath>

#include "device/cpu/channel_sums.hpp"
#include "device/cpu/feature_map.hpp"
#include "device/cpu/parallel.hpp"

namespace lockstep::cpu {
namespace {

// Channel blocks that are taken together: their part of the map stays in the shared cache from the first pass to the
// second, which halves the reads from memory.
constexpr std::int64_t group_bytes = 4 << 20;

std::int64_t blocks_together(const FeatureMap& map, std::int64_t maps_read) {
  const std::int64_t block_bytes = map.bytes() / map.blocks() * maps_read;
  return std::clamp<std::int64_t>(group_bytes / std::max<std::int64_t>(block_bytes, 1), 1, map.blocks());
}

// For each group of channel blocks: first(chunk, block) for all, then between(block), then second(chunk, block).
// Threads meet between the three. Each thread comes back to the pieces it had.
template <typename First, typename Between, typename Second>
void two_passes(int threads, const FeatureMap& map, const Chunks& chunks, std::int64_t together, const First& first,
                const Between& between, const Second& second) {
#pragma omp parallel num_threads(threads) if (threads > 1)
  for (std::int64_t group = 0; group < map.blocks(); group += together) {
    const std::int64_t blocks = std::min(together, map.blocks() - group);
#pragma omp for schedule(static)
    for (std::int64_t item = 0; item < chunks.count * blocks; ++item) first(item / blocks, group + item % blocks);
#pragma omp for schedule(static)
    for (std::int64_t block = group; block < group + blocks; ++block) between(block);
#pragma omp for schedule(static) nowait
    for (std::int64_t item = 0; item < chunks.count * blocks; ++item) second(item / blocks, group + item % blocks);
  }
}

// The rows of NormRow for every channel block; padding channels have zeros everywhere, so that they stay zero.
class Rows {
 public:
  Rows(const CpuContext& context, const FeatureMap& map)
      : lanes_(map.lanes), memory_(scratch(context, map.blocks() * norm_rows * map.lanes * size_of(DType::f32))) {}

  float* of(std::int64_t block) const { return memory_.as<float>() + block * norm_rows * lanes_; }
  void clear(std::int64_t block) const { std::fill_n(of(block), norm_rows * lanes_, 0.0F); }
  float& at(std::int64_t block, NormRow row, std::int64_t lane) const { return of(block)[row * lanes_ + lane]; }

 private:
  std::int64_t lanes_;
  Tensor memory_;
};

// Scale and shift as one multiplication and one addition. The same arithmetic wherever the gate is recomputed.
void set_forward_rows(const Rows& rows, std::int64_t block, std::int64_t lane, const NormWeights& weights,
                      std::int64_t channel, float mean, float inverse_deviation) {
  const float factor = weights.scale.as<float>()[channel] * inverse_deviation;
  rows.at(block, norm_factor, lane) = factor;
  rows.at(block, norm_offset, lane) = std::fma(-mean, factor, weights.shift.as<float>()[channel]);
  rows.at(block, norm_mean, lane) = mean;
}

}  // namespace

void norm_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor,
                  const NormWeights& weights, const Tensor& residual_tensor, Activation activation,
                  const Tensor& y_tensor, const NormSaved& saved, const BatchStatistics& statistics) {
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  const FeatureMap residual(residual_tensor ? residual_tensor : x_tensor, loops.lanes);
  const Chunks chunks(x);
  const ChannelSums sums(context, x, chunks, 2);
  const Rows rows(context, x);
  const auto count = static_cast<double>(x.images * x.pixels());

  // Sums of x minus some value of that channel: a mean far from zero would cancel the variance.
  const auto origin_of = [&](std::int64_t block) { return x.plane(x.images / 2, block); };
  const auto find_moments = [&](std::int64_t chunk, std::int64_t block) {
    alignas(64) float origin[most_lanes] = {};
    loops.unpack(origin_of(block), 1, loops.lanes, 0, 1, origin);
    loops.moments(x.plane(chunks.first_image(chunk), block), x.planes(chunks.images_in(chunk)), origin,
                  sums.of(block, chunk));
  };
  const auto finish_statistics = [&](std::int64_t block) {
    alignas(64) float origin[most_lanes] = {};
    loops.unpack(origin_of(block), 1, loops.lanes, 0, 1, origin);
    rows.clear(block);
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      const std::int64_t channel = block * loops.lanes + lane;
      const double shifted_mean = sums.total(block, 0, lane) / count;
      const double variance = std::max(sums.total(block, 1, lane) / count - shifted_mean * shifted_mean, 0.0);
      const double mean = origin[lane] + shifted_mean;
      const double unbiased = variance * count / std::max(count - 1, 1.0);
      saved.mean.as<float>()[channel] = static_cast<float>(mean);
      saved.inverse_deviation.as<float>()[channel] =
          static_cast<float>(1 / std::sqrt(variance + static_cast<double>(weights.epsilon)));
      put(statistics.mean, channel, mean * static_cast<double>(statistics.scale), statistics.accumulate);
      put(statistics.variance, channel, unbiased * static_cast<double>(statistics.scale), statistics.accumulate);
      set_forward_rows(rows, block, lane, weights, channel, saved.mean.as<float>()[channel],
                       saved.inverse_deviation.as<float>()[channel]);
    }
  };
  const auto normalise = [&](std::int64_t chunk, std::int64_t block) {
    const std::int64_t image = chunks.first_image(chunk);
    loops.normalise(x.plane(image, block), residual_tensor ? residual.plane(image, block) : nullptr,
                    x.planes(chunks.images_in(chunk)), rows.of(block), activation, y.plane(image, block));
  };
  two_passes(context.threads, x, chunks, blocks_together(x, 1), find_moments, finish_statistics, normalise);
}

void norm_infer(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const NormWeights& weights,
                const Tensor& mean, const Tensor& variance, const Tensor& residual_tensor, Activation activation,
                const Tensor& y_tensor) {
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  const FeatureMap residual(residual_tensor ? residual_tensor : x_tensor, loops.lanes);
  const Chunks chunks(x);
  const Rows rows(context, x);
  for (std::int64_t block = 0; block < x.blocks(); ++block) {
    rows.clear(block);
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      const std::int64_t channel = block * loops.lanes + lane;
      const float inverse_deviation = 1 / std::sqrt(variance.as<float>()[channel] + weights.epsilon);
      set_forward_rows(rows, block, lane, weights, channel, mean.as<float>()[channel], inverse_deviation);
    }
  }
  parallel_for(context.threads, chunks.count * x.blocks(), [&](std::int64_t item) {
    const std::int64_t block = item % x.blocks();
    const std::int64_t chunk = item / x.blocks();
    const std::int64_t image = chunks.first_image(chunk);
    loops.normalise(x.plane(image, block), residual_tensor ? residual.plane(image, block) : nullptr,
                    x.planes(chunks.images_in(chunk)), rows.of(block), activation, y.plane(image, block));
  });
}

void norm_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const Tensor& y_tensor,
                   const Tensor& dy_tensor, const NormWeights& weights, Activation activation, const NormSaved& saved,
                   const NormGradients& gradients) {
  const bool has_residual = static_cast<bool>(gradients.d_residual);
  const bool is_relu = activation == Activation::relu;
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(has_residual && is_relu ? y_tensor : x_tensor, loops.lanes);
  const FeatureMap dy(dy_tensor, loops.lanes);
  const FeatureMap dz(has_residual ? gradients.d_residual : dy_tensor, loops.lanes);
  const FeatureMap dx(gradients.dx, loops.lanes);
  const Gate sums_gate = !is_relu ? Gate::open : has_residual ? Gate::from_y : Gate::from_x;
  // Behind a residual the first pass leaves dz in d_residual, and the second takes it from there.
  const Gate gradient_gate = is_relu && !has_residual ? Gate::from_x : Gate::open;
  const bool writes_dz = has_residual && (is_relu || dz.data != dy.data);
  const Chunks chunks(x);
  const ChannelSums sums(context, x, chunks, 2);
  const Rows rows(context, x);
  const auto count = static_cast<double>(x.images * x.pixels());

  for (std::int64_t block = 0; block < x.blocks(); ++block) {
    rows.clear(block);
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      const std::int64_t channel = block * loops.lanes + lane;
      set_forward_rows(rows, block, lane, weights, channel, saved.mean.as<float>()[channel],
                       saved.inverse_deviation.as<float>()[channel]);
    }
  }
  const auto add_up = [&](std::int64_t chunk, std::int64_t block) {
    const std::int64_t image = chunks.first_image(chunk);
    loops.norm_sums(x.plane(image, block), y.plane(image, block), dy.plane(image, block),
                    x.planes(chunks.images_in(chunk)), rows.of(block), sums_gate,
                    writes_dz ? dz.plane(image, block) : nullptr, sums.of(block, chunk));
  };
  // With u = (x - mean) / deviation: d_shift = sum dz, d_scale = sum dz * u,
  // dx = scale / deviation * (dz - d_shift / count - u * d_scale / count)   (Ioffe and Szegedy 2015).
  const auto finish_sums = [&](std::int64_t block) {
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      const std::int64_t channel = block * loops.lanes + lane;
      const double inverse_deviation = saved.inverse_deviation.as<float>()[channel];
      const double d_shift = sums.total(block, 0, lane);
      const double d_scale = sums.total(block, 1, lane) * inverse_deviation;
      rows.at(block, norm_x_factor, lane) = static_cast<float>(-inverse_deviation * d_scale / count);
      rows.at(block, norm_mean_dz, lane) = static_cast<float>(d_shift / count);
      put(gradients.d_scale, channel, d_scale, gradients.accumulate);
      put(gradients.d_shift, channel, d_shift, gradients.accumulate);
    }
  };
  const auto find_gradient = [&](std::int64_t chunk, std::int64_t block) {
    const std::int64_t image = chunks.first_image(chunk);
    loops.norm_gradient(x.plane(image, block), dz.plane(image, block), x.planes(chunks.images_in(chunk)),
                        rows.of(block), gradient_gate, dx.plane(image, block));
  };
  two_passes(context.threads, x, chunks, blocks_together(x, has_residual ? 3 : 2), add_up, finish_sums, find_gradient);
}

}  // namespace lockstep::cpu
