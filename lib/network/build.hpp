// Describes a network, one operation after the other:
//
//   using namespace build;
//   NetworkGraph graph({32, 32, 3});
//   Value x = relu(batch_norm(conv(input(graph), "conv1", {.out = 64, .kernel = 3, .padding = 1}), "bn1"));
//   x = linear(global_mean_pool(x), "fc", 10);
//
// All functions add a node to the value's graph, and throw as NetworkGraph::add().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "network/graph.hpp"

namespace lockstep::build {

// The value of a node. The graph must outlive it.
struct Value {
  NetworkGraph* graph;
  std::size_t node;

  const ValueShape& shape() const { return graph->node(node).shape; }
};

struct ConvOptions {
  std::int64_t out;  // channels
  Size2d kernel;
  Size2d stride = 1;
  Size2d padding = 0;
  bool has_bias = false;
  WeightScheme scheme = WeightScheme::he_normal_fan_out;
};

Value input(NetworkGraph& graph);
Value conv(Value x, const std::string& name, const ConvOptions& options);
Value batch_norm(Value x, const std::string& name, const op::BatchNorm& options = {});
Value relu(Value x);
Value leaky_relu(Value x, float slope);
Value clip(Value x, float low, float high);
Value sigmoid(Value x);
Value tanh(Value x);
Value gelu(Value x);
Value scale(Value x, const std::vector<float>& factors);
Value shift(Value x, const std::vector<float>& terms);
Value dropout(Value x, float ratio);
Value add(Value a, Value b);
Value concat(const std::vector<Value>& x);
Value max_pool(Value x, const Pool2d& pool);
Value average_pool(Value x, const Pool2d& pool, bool counts_padding = false);
Value blur(Value x, std::int64_t stride);
Value subsample(Value x, std::int64_t stride, std::int64_t out_channels);
Value global_mean_pool(Value x);
Value flatten(Value x);
Value unflatten(Value x);
Value linear(Value x, const std::string& name, std::int64_t out, bool has_bias = true);

}  // namespace lockstep::build
