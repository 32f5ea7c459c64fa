#include "device/cpu/passes/feature_passes.hpp"

#include <cstring>

#include "device/cpu/layout/feature_map.hpp"
#include "device/cpu/norm/channel_sums.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

// Calls body(image, block) for every plane of the map.
template <typename Body>
void for_each_plane(const CpuContext& context, const FeatureMap& map, const Body& body) {
  parallel_for(context.threads, map.images * map.blocks(),
               [&](std::int64_t plane) { body(plane / map.blocks(), plane % map.blocks()); });
}

PoolPlane pool_plane(const Pool2d& pool, const FeatureMap& x, const FeatureMap& y) {
  assert(y.height == pool.out_size(x.height) && y.width == pool.out_size(x.width));
  return {pool, x.height, x.width, y.height, y.width};
}

}  // namespace

void bias_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const Tensor& bias,
                  Activation activation, const Tensor& y_tensor) {
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  const auto* offsets = bias.as<float>();
  for_each_plane(context, x, [&](std::int64_t image, std::int64_t block) {
    alignas(64) float rows[norm_rows * most_lanes] = {};
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      rows[norm_factor * loops.lanes + lane] = 1;
      rows[norm_offset * loops.lanes + lane] = offsets[block * loops.lanes + lane];
    }
    loops.normalise(x.plane(image, block), nullptr, x.planes(1), rows, activation, y.plane(image, block));
  });
}

void bias_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& y_tensor, const Tensor& dy_tensor,
                   Activation activation, const Tensor& dx_tensor, const Tensor& d_bias, Accumulate accumulate) {
  const FeatureMap y(activation == Activation::relu ? y_tensor : dy_tensor, loops.lanes);
  const FeatureMap dy(dy_tensor, loops.lanes);
  const FeatureMap dx(dx_tensor, loops.lanes);
  const Chunks chunks(dy);
  const ChannelSums sums(context, dy, chunks, 1);
  parallel_for(context.threads, chunks.count * dy.blocks(), [&](std::int64_t item) {
    const std::int64_t block = item % dy.blocks();
    const std::int64_t chunk = item / dy.blocks();
    const std::int64_t image = chunks.first_image(chunk);
    loops.bias_gradient(y.plane(image, block), dy.plane(image, block), dy.planes(chunks.images_in(chunk)), activation,
                        dx.plane(image, block), sums.of(block, chunk));
  });
  for (std::int64_t channel = 0; channel < dy.channels; ++channel) {
    sums.put_total(channel, 0, 1, d_bias, accumulate);
  }
}

void max_pool_forward(const CpuContext& context, const VectorLoops& loops, const Pool2d& pool, const Tensor& x_tensor,
                      const Tensor& y_tensor, const Tensor& winner_tensor) {
  assert(pool.kernel * pool.kernel <= 256);  // places fit u8
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  const FeatureMap winner(winner_tensor, loops.lanes);
  const PoolPlane geometry = pool_plane(pool, x, y);
  for_each_plane(context, x, [&](std::int64_t image, std::int64_t block) {
    loops.max_pool(x.plane(image, block), geometry, y.plane(image, block),
                   reinterpret_cast<std::uint8_t*>(winner.plane(image, block)));
  });
}

void max_pool_backward(const CpuContext& context, const VectorLoops& loops, const Pool2d& pool, const Tensor& dy_tensor,
                       const Tensor& winner_tensor, const Tensor& dx_tensor) {
  const FeatureMap dy(dy_tensor, loops.lanes);
  const FeatureMap winner(winner_tensor, loops.lanes);
  const FeatureMap dx(dx_tensor, loops.lanes);
  const PoolPlane geometry = pool_plane(pool, dx, dy);
  for_each_plane(context, dx, [&](std::int64_t image, std::int64_t block) {
    loops.max_pool_gradient(dy.plane(image, block), reinterpret_cast<std::uint8_t*>(winner.plane(image, block)),
                            geometry, dx.plane(image, block));
  });
}

void mean_pool_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const Tensor& y) {
  const FeatureMap x(x_tensor, loops.lanes);
  const auto count = static_cast<double>(x.pixels());
  for_each_plane(context, x, [&](std::int64_t image, std::int64_t block) {
    alignas(64) double sums[most_lanes];
    loops.sum_pixels(x.plane(image, block), x.pixels(), sums);
    float* means = y.as<float>() + image * x.channels + block * loops.lanes;
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      means[lane] = static_cast<float>(sums[lane] / count);
    }
  });
}

void mean_pool_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& dy,
                        const Tensor& dx_tensor) {
  const FeatureMap dx(dx_tensor, loops.lanes);
  const auto count = static_cast<float>(dx.pixels());
  for_each_plane(context, dx, [&](std::int64_t image, std::int64_t block) {
    alignas(64) float row[most_lanes] = {};
    const float* gradients = dy.as<float>() + image * dx.channels + block * loops.lanes;
    for (std::int64_t lane = 0; lane < dx.channels_in(block); ++lane) row[lane] = gradients[lane] / count;
    loops.fill_pixels(row, dx.pixels(), dx.plane(image, block));
  });
}

void flatten_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const Tensor& y) {
  const FeatureMap x(x_tensor, loops.lanes);
  for_each_plane(context, x, [&](std::int64_t image, std::int64_t block) {
    loops.unpack(x.plane(image, block), x.pixels(), x.channels_in(block), 1, x.pixels(),
                 y.as<float>() + (image * x.channels + block * loops.lanes) * x.pixels());
  });
}

void flatten_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& dy, const Tensor& dx_tensor) {
  const FeatureMap dx(dx_tensor, loops.lanes);
  for_each_plane(context, dx, [&](std::int64_t image, std::int64_t block) {
    loops.pack(dy.as<float>() + (image * dx.channels + block * loops.lanes) * dx.pixels(), dx.pixels(),
               dx.channels_in(block), 1, dx.pixels(), dx.plane(image, block));
  });
}

void subsample_forward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& x_tensor,
                       const Tensor& y_tensor) {
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  assert(y.channels >= x.channels && y.height == (x.height + stride - 1) / stride);
  for_each_plane(context, y, [&](std::int64_t image, std::int64_t block) {
    if (block < x.blocks()) {
      loops.subsample(x.plane(image, block), x.height, x.width, stride, y.plane(image, block));
    } else {
      std::memset(y.plane(image, block), 0, static_cast<std::size_t>(y.plane_bytes()));
    }
  });
}

void subsample_backward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride,
                        const Tensor& dy_tensor, const Tensor& dx_tensor) {
  const FeatureMap dy(dy_tensor, loops.lanes);
  const FeatureMap dx(dx_tensor, loops.lanes);
  for_each_plane(context, dx, [&](std::int64_t image, std::int64_t block) {
    loops.subsample_gradient(dy.plane(image, block), dx.height, dx.width, dx.channels_in(block), stride,
                             dx.plane(image, block));
  });
}

void add(const CpuContext& context, const VectorLoops& loops, const Tensor& other_tensor, const Tensor& sum_tensor) {
  const FeatureMap other(other_tensor, loops.lanes);
  const FeatureMap sum(sum_tensor, loops.lanes);
  assert(other_tensor.shape() == sum_tensor.shape());
  for_each_plane(context, sum, [&](std::int64_t image, std::int64_t block) {
    loops.add(other.plane(image, block), sum.pixels(), sum.plane(image, block));
  });
}

}  // namespace lockstep::cpu
