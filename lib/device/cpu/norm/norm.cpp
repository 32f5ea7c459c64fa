// Batch norm in one or two passes over a feature map. Training reads x twice: for the moments and to normalize; sums
// from the convolution save the first pass. Backward sums dz and dz * (x - mean), then computes dx. All sums are per
// piece, see piece_sums.hpp; the factors of a channel are in a NormTable (norm_table.hpp).
#include "device/cpu/norm/norm.hpp"

#include <algorithm>
#include <cmath>

#include "device/cpu/layout/feature_map.hpp"
#include "device/cpu/norm/sync_batch_norm.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

// Bytes of the channel blocks that are processed together. Their part of the map stays in the shared cache between the
// two passes, which halves the reads from memory.
constexpr std::int64_t group_bytes = 4 << 20;

std::int64_t blocks_together(const FeatureMap& map, std::int64_t maps_read) {
  const std::int64_t block_bytes = map.bytes() / map.blocks() * maps_read;
  return std::clamp<std::int64_t>(group_bytes / std::max<std::int64_t>(block_bytes, 1), 1, map.blocks());
}

// For each group of channel blocks: first(piece, block) for all, then between(block, end) for the blocks before `end`,
// then second(piece, block). Each thread gets the same pieces in both passes.
template <typename First, typename Between, typename Second>
void two_passes(int threads, const FeatureMap& map, std::int64_t together, const First& first, const Between& between,
                const Second& second) {
  const ImagePieces pieces(map);
  for (std::int64_t group = 0; group < map.blocks(); group += together) {
    const std::int64_t blocks = std::min(together, map.blocks() - group);
    const auto for_each = [&](const auto& pass) {
      parallel_for(threads, pieces.count * blocks,
                   [&](std::int64_t item) { pass(item / blocks, group + item % blocks); });
    };
    for_each(first);
    between(group, group + blocks);
    for_each(second);
  }
}

double values_per_channel(const Tensor& map) {
  const Shape& shape = map.shape();
  return static_cast<double>(shape[0] * shape[1] * shape[2]);
}

NormTable scratch_table(const Tensor& memory, const FeatureMap& map) {
  return {reinterpret_cast<float*>(memory.data()), map.channels, map.lanes};
}

// `kept`: where the rows are kept, or empty.
Tensor table_memory(const CpuContext& context, const FeatureMap& map, const Tensor& kept = {}) {
  if (kept) return kept;
  return scratch_tensor(context.arena, NormTable::floats_for(map.channels, map.lanes) * size_of(DType::f32));
}

// A pass over a feature map: y = activation(factor * x + offset (+ residual)).
class Normalize {
 public:
  Normalize(const VectorLoops& loops, const NormTable& table, const Tensor& x, const Tensor& residual,
            Activation activation, const Tensor& y)
      : loops_(loops),
        table_(table),
        x_(x, loops.lanes),
        residual_(residual ? residual : x, loops.lanes),
        has_residual_(residual),
        activation_(activation),
        y_(y, loops.lanes),
        pieces_(x_) {}

  void operator()(std::int64_t piece, std::int64_t block) const {
    const std::int64_t image = pieces_.first_image(piece);
    loops_.normalize(x_.plane(image, block), has_residual_ ? residual_.plane(image, block) : nullptr,
                     x_.planes(pieces_.images_in(piece)), table_.of(block), activation_, y_.plane(image, block));
  }

 private:
  const VectorLoops& loops_;
  const NormTable& table_;
  FeatureMap x_, residual_;
  bool has_residual_;
  Activation activation_;
  FeatureMap y_;
  ImagePieces pieces_;
};

// The moments of every channel, as sums of x minus a value of that channel. Otherwise a mean far from zero would cancel
// the variance.
class ChannelMoments {
 public:
  ChannelMoments(const CpuContext& context, const VectorLoops& loops, const FeatureMap& x)
      : loops_(loops),
        x_(x),
        pieces_(x),
        sums_{pieces_.count, x.blocks(), x.lanes},
        memory_(scratch_tensor(context.arena, sums_.bytes())) {}

  void add_up(std::int64_t piece, std::int64_t block) const {
    alignas(64) float origin[max_lanes];
    find_origin(block, origin);
    loops_.moments(x_.plane(pieces_.first_image(piece), block), x_.planes(pieces_.images_in(piece)), origin,
                   sums_.of(memory_.data(), piece, block));
  }
  Moments of(std::int64_t block, std::int64_t lane) const {
    alignas(64) float origin[max_lanes];
    find_origin(block, origin);
    return {sums_.total(memory_.data(), block, 0, lane), sums_.total(memory_.data(), block, 1, lane),
            static_cast<double>(origin[lane]), static_cast<double>(x_.images * x_.pixels())};
  }

 private:
  void find_origin(std::int64_t block, float* origin) const {
    loops_.unpack(x_.plane(x_.images / 2, block), 1, loops_.lanes, 0, 1, origin);
  }

  const VectorLoops& loops_;
  const FeatureMap& x_;
  ImagePieces pieces_;
  PieceSums sums_;
  Tensor memory_;
};

// The two passes of backward. After a residual, the first pass leaves dz in d_residual for the second. Otherwise both
// compute dz from dy and x, without memory traffic of its own.
class Backward {
 public:
  Backward(const CpuContext& context, const VectorLoops& loops, const NormTable& table, const Tensor& x,
           const Tensor& y, const Tensor& dy, Activation activation, const NormGradients& gradients)
      : loops_(loops),
        table_(table),
        has_residual_(gradients.d_residual),
        is_relu_(activation == Activation::relu),
        through_(activation == Activation::none   ? ActivationGradient::pass
                 : activation == Activation::gelu ? ActivationGradient::gelu_of_x
                 : has_residual_                  ? ActivationGradient::relu_of_y
                                                  : ActivationGradient::relu_of_x),
        x_(x, loops.lanes),
        y_(has_residual_ && is_relu_ ? y : x, loops.lanes),
        dy_(dy, loops.lanes),
        dz_(has_residual_ ? gradients.d_residual : dy, loops.lanes),
        dx_(gradients.dx, loops.lanes),
        pieces_(x_),
        sums_{pieces_.count, x_.blocks(), x_.lanes},
        memory_(scratch_tensor(context.arena, sums_.bytes())) {}

  void add_up(std::int64_t piece, std::int64_t block) const {
    const std::int64_t image = pieces_.first_image(piece);
    const bool writes_dz = has_residual_ && (is_relu_ || dz_.data != dy_.data);
    loops_.norm_sums(x_.plane(image, block), y_.plane(image, block), dy_.plane(image, block),
                     x_.planes(pieces_.images_in(piece)), table_.of(block), through_,
                     writes_dz ? dz_.plane(image, block) : nullptr, sums_.of(memory_.data(), piece, block));
  }
  GradientSums sums_of(std::int64_t channel) const {
    const std::int64_t block = channel / loops_.lanes;
    const std::int64_t lane = channel % loops_.lanes;
    return {sums_.total(memory_.data(), block, 0, lane), sums_.total(memory_.data(), block, 1, lane)};
  }

  void find_gradient(std::int64_t piece, std::int64_t block) const {
    const std::int64_t image = pieces_.first_image(piece);
    const ActivationGradient left = has_residual_ ? ActivationGradient::pass : through_;
    loops_.norm_gradient(x_.plane(image, block), dz_.plane(image, block), x_.planes(pieces_.images_in(piece)),
                         table_.of(block), left, dx_.plane(image, block));
  }

 private:
  const VectorLoops& loops_;
  const NormTable& table_;
  bool has_residual_, is_relu_;
  ActivationGradient through_;
  FeatureMap x_, y_, dy_, dz_, dx_;
  ImagePieces pieces_;
  PieceSums sums_;
  Tensor memory_;
};

}  // namespace

void apply_norm(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const NormTable& table,
                const Tensor& residual, Activation activation, const Tensor& y) {
  const FeatureMap x(x_tensor, loops.lanes);
  const Normalize normalize(loops, table, x_tensor, residual, activation, y);
  parallel_for(context.threads, ImagePieces(x).count * x.blocks(),
               [&](std::int64_t item) { normalize(item / x.blocks(), item % x.blocks()); });
}

void norm_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const BatchNorm& norm,
                  const Tensor& residual, Activation activation, const Tensor& y) {
  const FeatureMap x(x_tensor, loops.lanes);
  const Tensor memory = table_memory(context, x, norm.saved.rows);
  const NormTable table = scratch_table(memory, x);
  table.clear();
  const ChannelMoments moments(context, loops, x);
  const auto finish_statistics = [&](std::int64_t block, std::int64_t end) {
    set_forward_from_ranks(
        context, {block * loops.lanes, std::min(end * loops.lanes, x.channels)}, norm, table,
        [&](std::int64_t channel) { return spread_of(moments.of(channel / loops.lanes, channel % loops.lanes)); });
  };
  two_passes(
      context.threads, x, norm.saved.group == nullptr ? blocks_together(x, 1) : x.blocks(),
      [&](std::int64_t piece, std::int64_t block) { moments.add_up(piece, block); }, finish_statistics,
      Normalize(loops, table, x_tensor, residual, activation, y));
}

void set_batch_norm(const CpuContext& context, const Tensor& x, const OutputSums& sums, const BatchNorm& norm,
                    const NormTable& table) {
  const double count = values_per_channel(x);
  table.clear();
  set_forward_from_ranks(context, {0, table.channels()}, norm, table, [&](std::int64_t channel) {
    return spread_of({sums.first[channel], sums.second[channel], 0.0, count});
  });
}

void set_batch_norm(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const BatchNorm& norm,
                    const NormTable& table) {
  const FeatureMap x(x_tensor, loops.lanes);
  const ChannelMoments moments(context, loops, x);
  parallel_for(context.threads, ImagePieces(x).count * x.blocks(),
               [&](std::int64_t item) { moments.add_up(item / x.blocks(), item % x.blocks()); });
  table.clear();
  set_forward_from_ranks(context, {0, table.channels()}, norm, table, [&](std::int64_t channel) {
    return spread_of(moments.of(channel / loops.lanes, channel % loops.lanes));
  });
}

void set_norm_gradient(const CpuContext& context, const Tensor& x, const OutputSums& sums, const NormGradient& gradient,
                       const NormTable& table) {
  set_backward_from_ranks(context, {0, table.channels()}, values_per_channel(x), gradient, table,
                          [&](std::int64_t channel) -> GradientSums {
                            return {sums.first[channel], sums.second[channel]};
                          });
}

void norm_backward_deferred(const CpuContext& context, const VectorLoops& loops, const NormedGradient& dy,
                            const NormTable& table) {
  const FeatureMap x(dy.x.x, loops.lanes);
  const FeatureMap dz(dy.dz, loops.lanes);
  const FeatureMap dx(dy.dy, loops.lanes);
  const ImagePieces pieces(x);
  parallel_for(context.threads, pieces.count * x.blocks(), [&](std::int64_t item) {
    const std::int64_t block = item % x.blocks();
    const std::int64_t image = pieces.first_image(item / x.blocks());
    loops.norm_gradient(x.plane(image, block), dz.plane(image, block), x.planes(pieces.images_in(item / x.blocks())),
                        table.of(block), ActivationGradient::pass, dx.plane(image, block));
  });
}

void norm_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const OutputSums& sums,
                  const BatchNorm& norm, const Tensor& residual, Activation activation, const Tensor& y) {
  const FeatureMap x(x_tensor, loops.lanes);
  const Tensor memory = table_memory(context, x, norm.saved.rows);
  const NormTable table = scratch_table(memory, x);
  set_batch_norm(context, x_tensor, sums, norm, table);
  apply_norm(context, loops, x_tensor, table, residual, activation, y);
}

void set_running_norm(const NormWeights& weights, const Tensor& mean, const Tensor& variance, const NormTable& table) {
  table.clear();
  for (std::int64_t channel = 0; channel < table.channels(); ++channel) {
    const float inverse_deviation = 1 / std::sqrt(variance.as<float>()[channel] + weights.epsilon);
    table.set_forward(channel, weights, mean.as<float>()[channel], inverse_deviation);
  }
}

void norm_infer(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const NormWeights& weights,
                const Tensor& mean, const Tensor& variance, const Tensor& residual, Activation activation,
                const Tensor& y) {
  const FeatureMap x(x_tensor, loops.lanes);
  const Tensor memory = table_memory(context, x);
  const NormTable table = scratch_table(memory, x);
  set_running_norm(weights, mean, variance, table);
  apply_norm(context, loops, x_tensor, table, residual, activation, y);
}

void norm_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const Tensor& y,
                   const Tensor& dy, const NormWeights& weights, Activation activation, const NormSaved& saved,
                   const NormGradients& gradients) {
  const FeatureMap x(x_tensor, loops.lanes);
  const Tensor memory = table_memory(context, x);
  const NormTable table = scratch_table(memory, x);
  table.clear();
  for (std::int64_t channel = 0; channel < x.channels; ++channel) {
    table.set_forward(channel, weights, saved.mean.as<float>()[channel], saved.inverse_deviation.as<float>()[channel]);
  }
  const Backward backward(context, loops, table, x_tensor, y, dy, activation, gradients);
  const auto count = static_cast<double>(x.images * x.pixels());
  const NormGradient gradient{saved.inverse_deviation, gradients.d_scale, gradients.d_shift, gradients.accumulate,
                              saved.group};
  const auto finish_sums = [&](std::int64_t block, std::int64_t end) {
    set_backward_from_ranks(context, {block * loops.lanes, std::min(end * loops.lanes, x.channels)}, count, gradient,
                            table, [&](std::int64_t channel) { return backward.sums_of(channel); });
  };
  two_passes(
      context.threads, x, saved.group == nullptr ? blocks_together(x, gradients.d_residual ? 3 : 2) : x.blocks(),
      [&](std::int64_t piece, std::int64_t block) { backward.add_up(piece, block); }, finish_sums,
      [&](std::int64_t piece, std::int64_t block) { backward.find_gradient(piece, block); });
}

}  // namespace lockstep::cpu
