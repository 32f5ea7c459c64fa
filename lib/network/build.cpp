#include "network/build.hpp"

#include <cassert>

namespace lockstep::build {
namespace {

Value added(Value x, const Operation& operation, const std::string& name = "") {
  return {x.graph, x.graph->add(name, operation, {x.node})};
}

}  // namespace

Value input(NetworkGraph& graph) { return {&graph, 0}; }

Value conv(Value x, const std::string& name, const ConvOptions& options) {
  const Conv2d conv{x.shape().channels, options.out, options.kernel, options.stride, options.padding};
  return added(x, op::Convolution{conv, options.has_bias, options.scheme}, name);
}

Value batch_norm(Value x, const std::string& name, const op::BatchNorm& options) { return added(x, options, name); }

Value relu(Value x) { return added(x, op::Relu{}); }
Value leaky_relu(Value x, float slope) { return added(x, op::LeakyRelu{slope}); }
Value clip(Value x, float low, float high) { return added(x, op::Clip{low, high}); }
Value sigmoid(Value x) { return added(x, op::Sigmoid{}); }
Value tanh(Value x) { return added(x, op::Tanh{}); }
Value gelu(Value x) { return added(x, op::Gelu{}); }
Value scale(Value x, const std::vector<float>& factors) { return added(x, op::Scale{factors}); }
Value shift(Value x, const std::vector<float>& terms) { return added(x, op::Shift{terms}); }
Value dropout(Value x, float ratio) { return added(x, op::Dropout{ratio}); }

Value add(Value a, Value b) {
  assert(a.graph == b.graph);
  return {a.graph, a.graph->add("", op::Add{}, {a.node, b.node})};
}

Value concat(const std::vector<Value>& x) {
  std::vector<std::size_t> nodes;
  for (const Value& one : x) nodes.push_back(one.node);
  return {x.front().graph, x.front().graph->add("", op::Concat{}, nodes)};
}

Value max_pool(Value x, const Pool2d& pool) { return added(x, op::MaxPool{pool}); }
Value average_pool(Value x, const Pool2d& pool, bool counts_padding) {
  return added(x, op::AveragePool{pool, counts_padding});
}
Value blur(Value x, std::int64_t stride) { return added(x, op::Blur{stride}); }
Value subsample(Value x, std::int64_t stride, std::int64_t out_channels) {
  return added(x, op::Subsample{stride, out_channels});
}
Value global_mean_pool(Value x) { return added(x, op::GlobalMeanPool{}); }
Value flatten(Value x) { return added(x, op::Flatten{}); }
Value unflatten(Value x) { return added(x, op::Unflatten{}); }
Value linear(Value x, const std::string& name, std::int64_t out, bool has_bias) {
  return added(x, op::Linear{x.shape().channels, out, has_bias}, name);
}

}  // namespace lockstep::build
