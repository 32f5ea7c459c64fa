// Splits passes over feature maps into planes for the threads; the loops are in passes.inl. Softmax cross-entropy is
// computed here, in double.
#include "device/cpu/passes/passes.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "device/cpu/layout/feature_map.hpp"
#include "device/cpu/norm/piece_sums.hpp"
#include "device/cpu/threads/parallel.hpp"
#include "device/curve.hpp"
#include "device/reflect.hpp"

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

// A channel of a map.
struct ChannelOf {
  FeatureMap map;
  std::int64_t channel;
};

// Copies `count` channels of one image, in runs that cross no block. The first run of a block also sets the channels
// behind it to zero.
void copy_channels(std::int64_t image, const ChannelOf& from, const ChannelOf& to, std::int64_t count) {
  const std::int64_t lanes = to.map.lanes;
  const std::int64_t bytes = to.map.element_bytes;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t from_lane = (from.channel + done) % lanes;
    const std::int64_t to_lane = (to.channel + done) % lanes;
    const std::int64_t run = std::min(count - done, lanes - std::max(from_lane, to_lane));
    const std::byte* source = from.map.plane(image, (from.channel + done) / lanes) + from_lane * bytes;
    std::byte* target = to.map.plane(image, (to.channel + done) / lanes) + to_lane * bytes;
    done += run;
    if (run == lanes) {
      std::memcpy(target, source, static_cast<std::size_t>(to.map.plane_bytes()));
      continue;
    }
    if (to_lane == 0) std::memset(target, 0, static_cast<std::size_t>(to.map.plane_bytes()));
    for (std::int64_t pixel = 0; pixel < to.map.pixels(); ++pixel) {
      std::memcpy(target, source, static_cast<std::size_t>(run * bytes));
      source += lanes * bytes;
      target += lanes * bytes;
    }
  }
}

// `plane` is the larger one of `from` and `to`.
void blur(const CpuContext& context, const VectorLoops& loops, const BlurPlane& plane, const FeatureMap& from,
          const FeatureMap& to) {
  assert(from.height == ceil_div(plane.height, plane.from_stride) &&
         to.width == ceil_div(plane.width, plane.to_stride));
  for_each_plane(context, to, [&](std::int64_t image, std::int64_t block) {
    loops.blur(from.plane(image, block), plane, to.plane(image, block));
  });
}

Tensor doubles(const CpuContext& context, std::int64_t count) {
  return scratch_tensor(context.arena, count * std::int64_t{sizeof(double)});
}

double loss_scale_of(const LogitsGradient& gradient) {
  return gradient.loss_scale ? static_cast<double>(*gradient.loss_scale.as<float>()) : 1.0;
}

// The target of one sample: a mix of two labels, or one label twice.
struct SampleTarget {
  SampleTarget(const Targets& targets, std::int64_t sample)
      : label(targets.labels.as<std::int32_t>()[sample]),
        other(targets.others ? targets.others.as<std::int32_t>()[sample] : label),
        share(targets.shares ? static_cast<double>(targets.shares.as<float>()[sample]) : 1) {}

  double share_of(std::int64_t c) const { return (c == label ? share : 0) + (c == other ? 1 - share : 0); }
  // The mean of the two labels' logits, weighted by their shares.
  double mean(const float* logits) const {
    const auto first = static_cast<double>(logits[label]);
    return label == other ? first : share * first + (1 - share) * static_cast<double>(logits[other]);
  }
  std::int64_t major() const { return share < 0.5 ? other : label; }

  std::int64_t label;
  std::int64_t other;
  double share;
};

// Loss and gradient of one sample. `d_logits` may be null.
double sample_loss(const float* logits, std::int64_t classes, const SampleTarget& target, double smoothing,
                   double scale, float* d_logits) {
  const double largest = *std::max_element(logits, logits + classes);
  double exponentials = 0;
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    exponentials += std::exp(static_cast<double>(logits[c]) - largest);
    sum += static_cast<double>(logits[c]);
  }
  const double log_sum = largest + std::log(exponentials);
  const double spread = smoothing / static_cast<double>(classes);
  if (d_logits != nullptr) {
    for (std::int64_t c = 0; c < classes; ++c) {
      const double wanted = spread + (1 - smoothing) * target.share_of(c);
      d_logits[c] = static_cast<float>(scale * (std::exp(static_cast<double>(logits[c]) - log_sum) - wanted));
    }
  }
  // -(sum of target * log softmax); the targets add up to 1.
  return log_sum - (1 - smoothing) * target.mean(logits) - spread * sum;
}

}  // namespace

void bias_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const Tensor& bias,
                  Activation activation, const Tensor& y_tensor) {
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  const auto* offsets = bias.as<float>();
  for_each_plane(context, x, [&](std::int64_t image, std::int64_t block) {
    alignas(64) float rows[norm_rows * max_lanes] = {};
    for (std::int64_t lane = 0; lane < x.channels_in(block); ++lane) {
      rows[norm_factor * loops.lanes + lane] = 1;
      rows[norm_offset * loops.lanes + lane] = offsets[block * loops.lanes + lane];
    }
    loops.normalize(x.plane(image, block), nullptr, x.planes(1), rows, activation, y.plane(image, block));
  });
}

void bias_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& y_tensor, const Tensor& dy_tensor,
                   Activation activation, const Tensor& dx_tensor, const Tensor& d_bias, Accumulate accumulate) {
  const FeatureMap y(activation == Activation::relu ? y_tensor : dy_tensor, loops.lanes);
  const FeatureMap dy(dy_tensor, loops.lanes);
  const FeatureMap dx(dx_tensor, loops.lanes);
  const ImagePieces pieces(dy);
  const PieceSums sums{pieces.count, dy.blocks(), loops.lanes, 1};
  const Tensor memory = scratch_tensor(context.arena, sums.bytes());
  parallel_for(context.threads, pieces.count * dy.blocks(), [&](std::int64_t item) {
    const std::int64_t block = item % dy.blocks();
    const std::int64_t piece = item / dy.blocks();
    const std::int64_t image = pieces.first_image(piece);
    loops.bias_gradient(y.plane(image, block), dy.plane(image, block), dy.planes(pieces.images_in(piece)), activation,
                        dx.plane(image, block), sums.of(memory.data(), piece, block));
  });
  for (std::int64_t channel = 0; channel < dy.channels; ++channel) {
    const double total = sums.total(memory.data(), channel / loops.lanes, 0, channel % loops.lanes);
    put(d_bias, channel, total, accumulate);
  }
}

void max_pool_forward(const CpuContext& context, const VectorLoops& loops, const Pool2d& pool, const Tensor& x_tensor,
                      const Tensor& y_tensor, const Tensor& winner_tensor) {
  assert(pool.kernel * pool.kernel <= 256);  // window positions fit in u8
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

void average_pool_forward(const CpuContext& context, const VectorLoops& loops, const Pool2d& pool, bool counts_padding,
                          const Tensor& x_tensor, const Tensor& y_tensor) {
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  const PoolPlane geometry = pool_plane(pool, x, y);
  for_each_plane(context, x, [&](std::int64_t image, std::int64_t block) {
    loops.average_pool(x.plane(image, block), geometry, counts_padding, y.plane(image, block));
  });
}

void average_pool_backward(const CpuContext& context, const VectorLoops& loops, const Pool2d& pool, bool counts_padding,
                           const Tensor& dy_tensor, const Tensor& dx_tensor) {
  const FeatureMap dy(dy_tensor, loops.lanes);
  const FeatureMap dx(dx_tensor, loops.lanes);
  const PoolPlane geometry = pool_plane(pool, dx, dy);
  for_each_plane(context, dx, [&](std::int64_t image, std::int64_t block) {
    loops.average_pool_gradient(dy.plane(image, block), geometry, counts_padding, dx.plane(image, block));
  });
}

void blur_forward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& x_tensor,
                  const Tensor& y) {
  const FeatureMap x(x_tensor, loops.lanes);
  blur(context, loops, {x.height, x.width, 1, stride}, x, FeatureMap(y, loops.lanes));
}

void blur_backward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& dy,
                   const Tensor& dx_tensor) {
  const FeatureMap dx(dx_tensor, loops.lanes);
  blur(context, loops, {dx.height, dx.width, stride, 1}, FeatureMap(dy, loops.lanes), dx);
}

void mean_pool_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const Tensor& y) {
  const FeatureMap x(x_tensor, loops.lanes);
  const auto count = static_cast<double>(x.pixels());
  for_each_plane(context, x, [&](std::int64_t image, std::int64_t block) {
    alignas(64) double sums[max_lanes];
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
    alignas(64) float row[max_lanes] = {};
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

void mirror(const CpuContext& context, const Tensor& x, const Tensor& y) {
  assert(x.layout() == Layout::images && y.layout() == Layout::images && x.shape() == y.shape());
  const std::int64_t width = x.shape()[2];
  const float* const from = x.as<float>();
  float* const to = y.as<float>();
  parallel_for(context.threads, x.shape().count() / width, [=](std::int64_t row) {
    std::reverse_copy(from + row * width, from + (row + 1) * width, to + row * width);
  });
}

void shift(const CpuContext& context, std::int64_t rows, std::int64_t columns, const Tensor& x, const Tensor& y) {
  assert(x.layout() == Layout::images && y.layout() == Layout::images && x.shape() == y.shape());
  const std::int64_t height = x.shape()[1];
  const std::int64_t width = x.shape()[2];
  assert(std::abs(rows) < height && std::abs(columns) < width);
  const float* const from = x.as<float>();
  float* const to = y.as<float>();
  parallel_for(context.threads, x.shape().count() / width, [=](std::int64_t row) {
    const std::int64_t plane = row / height * height;
    const float* const shown = from + (plane + reflected(row % height + rows, height)) * width;
    for (std::int64_t column = 0; column < width; ++column) {
      to[row * width + column] = shown[reflected(column + columns, width)];
    }
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

void concat_forward(const CpuContext& context, const VectorLoops& loops, std::span<const Tensor> x,
                    const Tensor& y_tensor) {
  const FeatureMap y(y_tensor, loops.lanes);
  parallel_for(context.threads, y.images, [&](std::int64_t image) {
    std::int64_t channel = 0;
    for (const Tensor& one : x) {
      const FeatureMap from(one, loops.lanes);
      copy_channels(image, {from, 0}, {y, channel}, from.channels);
      channel += from.channels;
    }
  });
}

void concat_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& dy_tensor,
                     std::span<const Tensor> dx) {
  const FeatureMap dy(dy_tensor, loops.lanes);
  parallel_for(context.threads, dy.images, [&](std::int64_t image) {
    std::int64_t channel = 0;
    for (const Tensor& one : dx) {
      const FeatureMap to(one, loops.lanes);
      copy_channels(image, {dy, channel}, {to, 0}, to.channels);
      channel += to.channels;
    }
  });
}

void copy(const CpuContext& context, const VectorLoops& loops, const Tensor& x_tensor, const Tensor& y_tensor) {
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  for_each_plane(context, y, [&](std::int64_t image, std::int64_t block) {
    std::memcpy(y.plane(image, block), x.plane(image, block), static_cast<std::size_t>(y.plane_bytes()));
  });
}

void activate_forward(const CpuContext& context, const VectorLoops& loops, const Curve& curve, const Tensor& x_tensor,
                      const Tensor& y_tensor) {
  const FeatureMap x(x_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  for_each_plane(context, y, [&](std::int64_t image, std::int64_t block) {
    loops.activate(curve, x.plane(image, block), x.pixels(), x.channels_in(block), y.plane(image, block));
  });
}

void activate_backward(const CpuContext& context, const VectorLoops& loops, const Curve& curve,
                       const Tensor& saved_tensor, const Tensor& dy_tensor, const Tensor& dx_tensor) {
  const FeatureMap saved(saved_tensor, loops.lanes);
  const FeatureMap dy(dy_tensor, loops.lanes);
  const FeatureMap dx(dx_tensor, loops.lanes);
  for_each_plane(context, dx, [&](std::int64_t image, std::int64_t block) {
    loops.activate_gradient(curve, saved.plane(image, block), dy.plane(image, block), dx.pixels(),
                            dx.plane(image, block));
  });
}

void add(const CpuContext& context, const VectorLoops& loops, const Tensor& a_tensor, const Tensor& b_tensor,
         const Tensor& y_tensor) {
  const FeatureMap a(a_tensor, loops.lanes);
  const FeatureMap b(b_tensor, loops.lanes);
  const FeatureMap y(y_tensor, loops.lanes);
  assert(a_tensor.shape() == y_tensor.shape() && b_tensor.shape() == y_tensor.shape());
  for_each_plane(context, y, [&](std::int64_t image, std::int64_t block) {
    loops.add(a.plane(image, block), b.plane(image, block), y.pixels(), y.plane(image, block));
  });
}

void plain_activate_forward(const Curve& curve, const Tensor& x, const Tensor& y) {
  for (std::int64_t i = 0; i < x.shape().count(); ++i) y.as<float>()[i] = curve_value(curve, x.as<float>()[i]);
}

void plain_activate_backward(const Curve& curve, const Tensor& saved, const Tensor& dy, const Tensor& dx) {
  for (std::int64_t i = 0; i < saved.shape().count(); ++i) {
    dx.as<float>()[i] = dy.as<float>()[i] * curve_derivative(curve, saved.as<float>()[i]);
  }
}

void plain_add(const Tensor& a, const Tensor& b, const Tensor& y) {
  for (std::int64_t i = 0; i < y.shape().count(); ++i) y.as<float>()[i] = a.as<float>()[i] + b.as<float>()[i];
}

void plain_copy(const Tensor& x, const Tensor& y) {
  std::copy_n(x.as<float>(), static_cast<std::size_t>(x.shape().count()), y.as<float>());
}

void plain_bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y) {
  const std::int64_t channels = x.shape()[1];
  for (std::int64_t i = 0; i < x.shape().count(); ++i) {
    const float value = x.as<float>()[i] + bias.as<float>()[i % channels];
    y.as<float>()[i] = activation == Activation::relu && 0 > value ? 0 : value;
  }
}

void plain_bias_backward(const CpuContext& context, const Tensor& y, const Tensor& dy, Activation activation,
                         const Tensor& dx, const Tensor& d_bias, Accumulate accumulate) {
  const std::int64_t channels = dy.shape()[1];
  const Tensor memory = doubles(context, channels);
  auto* sums = reinterpret_cast<double*>(memory.data());
  std::fill_n(sums, channels, 0.0);
  for (std::int64_t i = 0; i < dy.shape().count(); ++i) {
    const bool is_shut = activation == Activation::relu && y.as<float>()[i] <= 0;
    const float gradient = is_shut ? 0 : dy.as<float>()[i];
    dx.as<float>()[i] = gradient;
    sums[i % channels] += static_cast<double>(gradient);
  }
  for (std::int64_t channel = 0; channel < channels; ++channel) put(d_bias, channel, sums[channel], accumulate);
}

void softmax_cross_entropy(const CpuContext& context, const Tensor& logits, const Targets& targets, float smoothing,
                           float scale, const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate) {
  const std::int64_t samples = logits.shape()[0];
  const std::int64_t classes = logits.shape()[1];
  const Tensor memory = doubles(context, samples);
  auto* losses = reinterpret_cast<double*>(memory.data());
  const double gradient_scale = static_cast<double>(scale) * loss_scale_of(gradient);
  parallel_for(context.threads, samples, [&](std::int64_t sample) {
    const SampleTarget target(targets, sample);
    assert(target.label >= -1 && target.label < classes && target.other < classes);
    float* const d_logits = gradient.d_logits ? gradient.d_logits.as<float>() + sample * classes : nullptr;
    losses[sample] = 0;
    if (target.label >= 0 && target.label < classes) {
      losses[sample] = sample_loss(logits.as<float>() + sample * classes, classes, target,
                                   static_cast<double>(smoothing), gradient_scale, d_logits);
    } else if (d_logits != nullptr) {
      std::fill_n(d_logits, classes, 0.0F);
    }
  });
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const float* row = logits.as<float>() + sample * classes;
    loss += losses[sample];
    correct += std::max_element(row, row + classes) - row == SampleTarget(targets, sample).major() ? 1 : 0;
  }
  put(sums.loss, 0, loss * static_cast<double>(scale), accumulate);
  put(sums.correct, 0, static_cast<double>(correct), accumulate);
}

}  // namespace lockstep::cpu
