#include "convolution_bound.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "models/model_zoo.hpp"

namespace lockstep {
namespace {

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

std::vector<ConvLayer> convolutions_of(const std::string& model, std::int64_t image_size) {
  const NetworkGraph graph = model_graph({model, {image_size, image_size, 3}, 10});
  std::vector<ConvLayer> layers;
  for (const GraphNode& node : graph.nodes()) {
    const auto* const one = node.as<op::Convolution>();
    if (one == nullptr) continue;
    const std::size_t input = node.inputs.front();
    const ConvLayer layer{one->conv, graph.node(input).shape.height, 1, input == 0};
    const auto same = std::ranges::find_if(layers, [&](const ConvLayer& other) {
      return other.conv == layer.conv && other.size == layer.size && other.reads_images == layer.reads_images;
    });
    if (same == layers.end()) {
      layers.push_back(layer);
    } else {
      ++same->times;
    }
  }
  return layers;
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
