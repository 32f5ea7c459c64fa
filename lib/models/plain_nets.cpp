#include "models/plain_nets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "network/build.hpp"

namespace lockstep {
namespace {

using namespace build;

constexpr Pool2d halve{.kernel = 2, .stride = 2};

NetworkGraph empty_graph(const SampleShape& sample) {
  return NetworkGraph({sample.height, sample.width, sample.channels});
}

ConvOptions biased_5x5(std::int64_t out, std::int64_t padding) {
  return {.out = out, .kernel = 5, .padding = padding, .has_bias = true, .scheme = WeightScheme::uniform_fan_in};
}

NetworkGraph airbench(const ModelOptions& options, const std::array<std::int64_t, 3>& widths) {
  NetworkGraph graph = empty_graph(options.sample);
  const ConvOptions whiten{
      .out = 2 * 4 * options.sample.channels, .kernel = 2, .has_bias = true, .scheme = WeightScheme::uniform_fan_in};
  Value x = gelu(conv(input(graph), "whiten", whiten));
  int block = 0;
  for (const std::int64_t width : widths) {
    const std::string name = fmt::format("block{}.", ++block);
    const ConvOptions same{.out = std::max<std::int64_t>(1, width / options.width_divisor),
                           .kernel = 3,
                           .padding = 1,
                           .scheme = WeightScheme::uniform_fan_in};
    constexpr op::BatchNorm norm{.epsilon = 1e-12F};
    x = gelu(batch_norm(max_pool(conv(x, name + "conv1", same), halve), name + "norm1", norm));
    x = gelu(batch_norm(conv(x, name + "conv2", same), name + "norm2", norm));
  }
  x = linear(flatten(max_pool(x, {.kernel = 3, .stride = 3})), "fc", options.classes, false);
  scale(x, {1.0F / 9});
  return graph;
}

}  // namespace

NetworkGraph lenet_graph(const ModelOptions& options) {
  NetworkGraph graph = empty_graph(options.sample);
  Value x = max_pool(relu(conv(input(graph), "conv1", biased_5x5(6, 0))), halve);
  x = flatten(max_pool(relu(conv(x, "conv2", biased_5x5(16, 0))), halve));
  x = relu(linear(x, "fc1", 120));
  x = relu(linear(x, "fc2", 84));
  linear(x, "fc3", options.classes);
  return graph;
}

NetworkGraph airbench_graph(const ModelOptions& options) { return airbench(options, {64, 256, 256}); }
NetworkGraph airbench95_graph(const ModelOptions& options) { return airbench(options, {128, 384, 384}); }

NetworkGraph convnet_graph(const ModelOptions& options) {
  NetworkGraph graph = empty_graph(options.sample);
  Value x = conv(input(graph), "layer1.0", biased_5x5(16, 2));
  x = max_pool(relu(batch_norm(x, "layer1.1")), halve);
  x = conv(x, "layer2.0", biased_5x5(32, 2));
  x = max_pool(relu(batch_norm(x, "layer2.1")), halve);
  linear(flatten(x), "fc", options.classes);
  return graph;
}

}  // namespace lockstep
