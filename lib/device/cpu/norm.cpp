#include "device/cpu/norm.hpp"

#include <algorithm>
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
void two_passes(int threads, const FeatureMap& map, std::int64_t together, const First& first, const Between& between,
                const Second& second) {
  const Chunks chunks(map);
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

// One pass over a feature map by the rows: y = activation(factor * x + offset (+ residual)).
class Normalise {
 public:
  Normalise(const VectorLoops& loops, const Rows& rows, const Tensor& x, const Tensor& residual, Activation activation,
            const Tensor& y)
      : loops_(loops),
        rows_(rows),
        x_(x, loops.lanes),
        residual_(residual ? residual : x, loops.lanes),
        has_residual_(residual),
        activation_(activation),
        y_(y, loops.lanes),
        chunks_(x_) {}

  void operator()(std::int64_t chunk, std::int64_t block) const {
    const std::int64_t image = chunks_.first_image(chunk);
    loops_.normalise(x_.plane(image, block), has_residual_ ? residual_.plane(image, block) : nullptr,
                     x_.planes(chunks_.images_in(chunk)), rows_.of(block), activation_, y_.plane(image, block));
  }

 private:
  const VectorLoops& loops_;
  const Rows& rows_;
  FeatureMap x_, residual_;
  bool has_residual_;
  Activation activation_;
  FeatureMap y_;
  Chunks chunks_;
};

// Mean and variance per channel, from sums of x minus some value of that channel: a mean far from zero would cancel the
// variance.
class Moments {
 public:
  struct Values {
    double mean;
    double variance;  // biased
  };

  Moments(const CpuContext& context, const VectorLoops& loops, const FeatureMap& x)
      : loops_(loops),
        x_(x),
        chunks_(x),
        sums_(context, x, chunks_, 2),
        count_(static_cast<double>(x.images * x.pixels())) {}

  void add_up(std::int64_t chunk, std::int64_t block) const {
    alignas(64) float origin[most_lanes];
    find_origin(block, origin);
    loops_.moments(x_.plane(chunks_.first_image(chunk), block), x_.planes(chunks_.images_in(chunk)), origin,
                   sums_.of(block, chunk));
  }
  Values of(std::int64_t block, std::int64_t lane) const {
    alignas(64) float origin[most_lanes];
    find_origin(block, origin);
    const double shifted_mean = sums_.total(block, 0, lane) / count_;
    const double variance = sums_.total(block, 1, lane) / count_ - shifted_mean * shifted_mean;
    return {static_cast<double>(origin[lane]) + shifted_mean, std::max(variance, 0.0)};
  }
  double unbiased(double variance) const { return variance * count_ / std::max(count_ - 1, 1.0); }

 private:
  void find_origin(std::int64_t block, float* origin) const {
    loops_.unpack(x_.plane(x_.images / 2, block), 1, loops_.lanes, 0, 1, origin);
  }

  const VectorLoops& loops_;
  const FeatureMap& x_;
  Chunks chunks_;
  ChannelSums sums_;
  double count_;
};

// The two passes of backward. Behind a residual the first leaves dz in d_residual, and the second takes it from there;
// otherwise both find dz from dy and x, which costs no memory traffic.
class Backward {
 public:
  Backward(const CpuContext& context, const VectorLoops& loops, const Rows& rows, const Tensor& x, const Tensor& y,
           const Tensor& dy, Activation activation, const NormGradients& gradients)
      : loops_(loops),
        rows_(rows),
        has_residual_(gradients.d_residual),
        is_relu_(activation == Activation::relu),
        x_(x, loops.lanes),
        y_(has_residual_ && is_relu_ ? y : x, loops.lanes),
        dy_(dy, loops.lanes),
        dz_(has_residual_ ? gradients.d_residual : dy, loops.lanes),
        dx_(gradients.dx, loops.lanes),
        chunks_(x_),
        sums_(context, x_, chunks_, 2) {}

  void add_up(std::int64_t chunk, std::int64_t block) const {
    const std::int64_t image = chunks_.first_image(chunk);
    const Gate gate = !is_relu_ ? Gate::open : has_residual_ ? Gate::from_y : Gate::from_x;
    const bool writes_dz = has_residual_ && (is_relu_ || dz_.data != dy_.data);
    loops_.norm_sums(x_.plane(image, block), y_.plane(image, block), dy_.plane(image, block),
                     x_.planes(chunks_.images_in(chunk)), rows_.of(block), gate,
                     writes_dz ? dz_.plane(image, block) : nullptr, sums_.of(block, chunk));
  }
  double sum_of_dz(std::int64_t block, std::int64_t lane) const { return sums_.total(block, 0, lane); }
  double sum_of_dz_x(std::int64_t block, std::int64_t lane) const { return sums_.total(block, 1, lane); }

  void find_gradient(std::int64_t chunk, std::int64_t block) const {
    const std::int64_t image = chunks_.first_image(chunk);
    const Gate gate = is_relu_ && !has_residual_ ? Gate::from_x : Gate::open;
    loops_.norm_gradient(x_.plane(image, block), dz_.plane(image, block), x_.planes(chunks_.images_in(chunk)),
                         rows_.of(block), gate, dx_.plane(image, block));
  }

 private:
  const VectorLoops& loops_;
  const Rows& rows_;
  bool has_residual_, is_relu_;
  FeatureMap x_, y_, dy_, dz_, dx_;
  Chunks chunks_;
  ChannelSums sums_;
};

}  // namespace

void norm_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor,
                  const NormWeights& weights, const Tensor& residual, Activation activation, const Tensor& y,
                  const NormSaved& saved, const BatchStatistics& statistics) {
  const FeatureMap x(x_tensor, loops.lanes);
  const Rows rows(context, x);
  const Moments moments(context, loops, x);
  const auto scale = static_cast<double>(statistics.scale);
  const auto finish_statistics = [&](std::int64_t block) {
    rows.clear(block);
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      const std::int64_t channel = block * loops.lanes + lane;
      const auto [mean, variance] = moments.of(block, lane);
      const double inverse_deviation = 1 / std::sqrt(variance + static_cast<double>(weights.epsilon));
      saved.mean.as<float>()[channel] = static_cast<float>(mean);
      saved.inverse_deviation.as<float>()[channel] = static_cast<float>(inverse_deviation);
      put(statistics.mean, channel, mean * scale, statistics.accumulate);
      put(statistics.variance, channel, moments.unbiased(variance) * scale, statistics.accumulate);
      set_forward_rows(rows, block, lane, weights, channel, saved.mean.as<float>()[channel],
                       saved.inverse_deviation.as<float>()[channel]);
    }
  };
  two_passes(
      context.threads, x, blocks_together(x, 1),
      [&](std::int64_t chunk, std::int64_t block) { moments.add_up(chunk, block); }, finish_statistics,
      Normalise(loops, rows, x_tensor, residual, activation, y));
}

void norm_infer(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const NormWeights& weights,
                const Tensor& mean, const Tensor& variance, const Tensor& residual, Activation activation,
                const Tensor& y) {
  const FeatureMap x(x_tensor, loops.lanes);
  const Rows rows(context, x);
  for (std::int64_t block = 0; block < x.blocks(); ++block) {
    rows.clear(block);
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      const std::int64_t channel = block * loops.lanes + lane;
      const float inverse_deviation = 1 / std::sqrt(variance.as<float>()[channel] + weights.epsilon);
      set_forward_rows(rows, block, lane, weights, channel, mean.as<float>()[channel], inverse_deviation);
    }
  }
  const Normalise normalise(loops, rows, x_tensor, residual, activation, y);
  parallel_for(context.threads, Chunks(x).count * x.blocks(),
               [&](std::int64_t item) { normalise(item / x.blocks(), item % x.blocks()); });
}

void norm_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const Tensor& y,
                   const Tensor& dy, const NormWeights& weights, Activation activation, const NormSaved& saved,
                   const NormGradients& gradients) {
  const FeatureMap x(x_tensor, loops.lanes);
  const Rows rows(context, x);
  for (std::int64_t block = 0; block < x.blocks(); ++block) {
    rows.clear(block);
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      const std::int64_t channel = block * loops.lanes + lane;
      set_forward_rows(rows, block, lane, weights, channel, saved.mean.as<float>()[channel],
                       saved.inverse_deviation.as<float>()[channel]);
    }
  }
  const Backward backward(context, loops, rows, x_tensor, y, dy, activation, gradients);
  const auto count = static_cast<double>(x.images * x.pixels());
  // With u = (x - mean) / deviation: d_shift = sum dz, d_scale = sum dz * u,
  // dx = scale / deviation * (dz - d_shift / count - u * d_scale / count)   (Ioffe and Szegedy 2015).
  const auto finish_sums = [&](std::int64_t block) {
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      const std::int64_t channel = block * loops.lanes + lane;
      const double inverse_deviation = saved.inverse_deviation.as<float>()[channel];
      const double d_shift = backward.sum_of_dz(block, lane);
      const double d_scale = backward.sum_of_dz_x(block, lane) * inverse_deviation;
      rows.at(block, norm_x_factor, lane) = static_cast<float>(-inverse_deviation * d_scale / count);
      rows.at(block, norm_mean_dz, lane) = static_cast<float>(d_shift / count);
      put(gradients.d_scale, channel, d_scale, gradients.accumulate);
      put(gradients.d_shift, channel, d_shift, gradients.accumulate);
    }
  };
  two_passes(
      context.threads, x, blocks_together(x, gradients.d_residual ? 3 : 2),
      [&](std::int64_t chunk, std::int64_t block) { backward.add_up(chunk, block); }, finish_sums,
      [&](std::int64_t chunk, std::int64_t block) { backward.find_gradient(chunk, block); });
}

}  // namespace lockstep::cpu
