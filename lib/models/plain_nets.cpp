#include "models/plain_nets.hpp"

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
