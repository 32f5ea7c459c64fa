#include "convolution_bound.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/error.hpp"

namespace lockstep {
namespace {

struct Stages {
  std::vector<std::int64_t> widths;
  std::vector<int> blocks;
  bool is_bottleneck;
  bool projects;  // shortcuts that change the shape are convolutions
};

// The blocks of one stage. The first may halve the picture; the others are identical.
void add_stage(std::vector<ConvLayer>& layers, const Stages& net, std::size_t stage, std::int64_t& channels,
               std::int64_t& size) {
  const std::int64_t width = net.widths[stage];
  const std::int64_t stride = stage > 0 ? 2 : 1;
  const std::int64_t out = net.is_bottleneck ? 4 * width : width;
  if (net.projects && (stride > 1 || channels != out)) layers.push_back({{channels, out, 1, stride, 0}, size});
  for (int block = 0; block < net.blocks[stage]; ++block) {
    const std::int64_t block_stride = block == 0 ? stride : 1;
    if (net.is_bottleneck) {
      layers.push_back({{channels, width, 1, 1, 0}, size});
      layers.push_back({{width, width, 3, block_stride, 1}, size});
      size = layers.back().conv.rows().out_size(size);
      layers.push_back({{width, out, 1, 1, 0}, size});
    } else {
      layers.push_back({{channels, width, 3, block_stride, 1}, size});
      size = layers.back().conv.rows().out_size(size);
      layers.push_back({{width, width, 3, 1, 1}, size});
    }
    channels = out;
  }
}

std::vector<ConvLayer> merged(const std::vector<ConvLayer>& layers) {
  std::vector<ConvLayer> kinds;
  for (const ConvLayer& layer : layers) {
    const auto same = std::ranges::find_if(
        kinds, [&](const ConvLayer& kind) { return kind.conv == layer.conv && kind.size == layer.size; });
    if (same == kinds.end()) {
      kinds.push_back(layer);
    } else {
      ++same->times;
    }
  }
  return kinds;
}

// The minimum of several runs. The first run selects the kernel.
template <typename Run>
double best_seconds(Device& device, const Run& run) {
  constexpr int rounds = 7;
  run();
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    device.synchronize();
    const auto start = std::chrono::steady_clock::now();
    run();
    device.synchronize();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Not all zero: processors run faster and cooler on zeros.
void fill(Device& device, const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 201) / 100 - 1;
  device.write(values, tensor);
}

}  // namespace

std::vector<ConvLayer> convolutions_of(std::string_view model, std::int64_t image_size) {
  Stages net;
  if (model == "resnet20") {
    net = {{16, 32, 64}, {3, 3, 3}, false, false};
  } else if (model == "resnet18") {
    net = {{64, 128, 256, 512}, {2, 2, 2, 2}, false, true};
  } else {
    require(model == "resnet50", Failure::usage,
            "no list of convolutions for model '{}'. Known: resnet18, resnet20, resnet50.", model);
    net = {{64, 128, 256, 512}, {3, 4, 6, 3}, true, true};
  }
  constexpr std::int64_t small_picture = 64;
  const bool is_small = !net.projects || image_size <= small_picture;
  std::int64_t channels = net.widths.front();
  const Conv2d stem = is_small ? Conv2d{3, channels, 3, 1, 1} : Conv2d{3, channels, 7, 2, 3};
  std::vector<ConvLayer> layers{{stem, image_size, 1, true}};
  std::int64_t size = is_small ? image_size : Pool2d{3, 2, 1}.out_size(stem.rows().out_size(image_size));
  for (std::size_t stage = 0; stage < net.widths.size(); ++stage) add_stage(layers, net, stage, channels, size);
  return merged(layers);
}

ConvSeconds measure(Device& device, const ConvLayer& layer, std::int64_t batch) {
  const Conv2d& conv = layer.conv;
  const std::int64_t out = conv.rows().out_size(layer.size);
  const DType dtype = device.precision();
  const Shape x_shape{batch, layer.size, layer.size, conv.in_channels};
  const Tensor x = layer.reads_images ? device.make(x_shape, DType::f32, Layout::images)
                                      : device.make(x_shape, dtype, Layout::features);
  const Tensor y = device.make({batch, out, out, conv.out_channels}, dtype, Layout::features);
  const std::vector<std::int64_t> dims{conv.out_channels, conv.in_channels, conv.kernel.height, conv.kernel.width};
  const std::int64_t count = device.stored_count(ParameterKind::conv_weight, dims);
  const Tensor weight = device.make({count}, DType::f32, Layout::plain);
  fill(device, x);
  fill(device, y);
  fill(device, weight);
  Ops& ops = device.ops();
  ConvSeconds seconds{};
  seconds.backward_weight =
      best_seconds(device, [&] { ops.conv_backward_weight(conv, {x}, {y}, weight, Accumulate::overwrite); });
  fill(device, weight);
  if (!layer.reads_images)
    seconds.backward_data =
        best_seconds(device, [&] { ops.conv_backward_data(conv, y, weight, x, Accumulate::overwrite); });
  fill(device, x);
  seconds.forward = best_seconds(device, [&] { ops.conv_forward(conv, {x}, weight, y, Tensor()); });
  return seconds;
}

double convolution_bound(Device& device, const std::vector<ConvLayer>& layers, std::int64_t batch) {
  double seconds = 0;
  for (const ConvLayer& layer : layers) seconds += layer.times * measure(device, layer, batch).sum();
  return static_cast<double>(batch) / seconds;
}

}  // namespace lockstep
