#include "export/onnx_graph.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores values in this order");

using Names = std::vector<std::string>;

void set_attribute(onnx::NodeProto& node, const char* name, std::int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void set_attribute(onnx::NodeProto& node, const char* name, float value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
}

void set_attribute(onnx::NodeProto& node, const char* name, const std::vector<std::int64_t>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

void set_window(onnx::NodeProto& node, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  set_attribute(node, "kernel_shape", {kernel, kernel});
  set_attribute(node, "strides", {stride, stride});
  set_attribute(node, "pads", {padding, padding, padding, padding});
}

}  // namespace

OnnxGraph::OnnxGraph(onnx::GraphProto& graph, std::span<const ParameterStore::Entry> entries) : graph_(graph) {
  for (const ParameterStore::Entry& entry : entries) entries_[entry.name] = &entry;
}

onnx::NodeProto& OnnxGraph::node(const char* kind, std::span<const std::string> inputs) {
  onnx::NodeProto& made = *graph_.add_node();
  made.set_op_type(kind);
  made.set_name(fmt::format("{}_{}", kind, graph_.node_size()));
  for (const std::string& input : inputs) made.add_input(input);
  made.add_output(made.name());
  return made;
}

std::string OnnxGraph::constant(const std::string& name, std::span<const std::int64_t> dims,
                                std::span<const float> values) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(values.data(), values.size_bytes());
  return name;
}

std::string OnnxGraph::numbers(std::span<const std::int64_t> values) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(fmt::format("numbers_{}", graph_.initializer_size()));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor.name();
}

std::string OnnxGraph::weight(const std::string& name) {
  const ParameterStore::Entry& entry = *entries_.at(name);
  return constant(name, entry.dims, entry.values);
}

GraphValue OnnxGraph::convolution(const GraphValue& x, const Conv2d& conv, const Parameter& weights,
                                  const Parameter* bias) {
  Names inputs = {x.name, weight(weights.name)};
  if (bias != nullptr) inputs.push_back(weight(bias->name));
  onnx::NodeProto& made = node("Conv", inputs);
  set_window(made, conv.kernel, conv.stride, conv.padding);
  return value_of(made, conv.out_channels);
}

GraphValue OnnxGraph::norm(const GraphValue& x, const Parameter& scale, const Parameter& shift, const Statistic& mean,
                           const Statistic& variance) {
  const Names inputs = {x.name, weight(scale.name), weight(shift.name), weight(mean.name), weight(variance.name)};
  onnx::NodeProto& made = node("BatchNormalization", inputs);
  set_attribute(made, "epsilon", NormWeights{}.epsilon);
  return value_of(made, x.channels);
}

GraphValue OnnxGraph::activation(const GraphValue& x, Activation activation) {
  if (activation == Activation::none) return x;
  return value_of(node("Relu", Names{x.name}), x.channels);
}

GraphValue OnnxGraph::add(const GraphValue& a, const GraphValue& b) {
  return value_of(node("Add", Names{a.name, b.name}), a.channels);
}

GraphValue OnnxGraph::max_pool(const GraphValue& x, const Pool2d& pool) {
  onnx::NodeProto& made = node("MaxPool", Names{x.name});
  set_window(made, pool.kernel, pool.stride, pool.padding);
  return value_of(made, x.channels);
}

GraphValue OnnxGraph::blur(const GraphValue& x, std::int64_t stride) {
  constexpr std::array<float, 3> binomial = {0.25F, 0.5F, 0.25F};
  std::vector<float> kernels;
  for (std::int64_t channel = 0; channel < x.channels; ++channel) {
    for (const float down : binomial) {
      for (const float across : binomial) kernels.push_back(down * across);
    }
  }
  const std::array<std::int64_t, 4> dims = {x.channels, 1, 3, 3};
  const std::string name = fmt::format("blur_{}", graph_.initializer_size());
  onnx::NodeProto& made = node("Conv", Names{x.name, constant(name, dims, kernels)});
  set_attribute(made, "group", x.channels);
  set_window(made, 3, stride, 1);
  return value_of(made, x.channels);
}

GraphValue OnnxGraph::mean_pool(const GraphValue& x) {
  return flatten(value_of(node("GlobalAveragePool", Names{x.name}), x.channels));
}

GraphValue OnnxGraph::subsample(const GraphValue& x, std::int64_t stride, std::int64_t channels) {
  constexpr std::array<std::int64_t, 2> starts = {0, 0};
  constexpr std::array<std::int64_t, 2> ends = {INT64_MAX, INT64_MAX};
  constexpr std::array<std::int64_t, 2> axes = {2, 3};  // rows and columns
  const std::array<std::int64_t, 2> steps = {stride, stride};
  const Names sliced = {x.name, numbers(starts), numbers(ends), numbers(axes), numbers(steps)};
  const GraphValue smaller = value_of(node("Slice", sliced), x.channels);
  const std::array<std::int64_t, 8> pads = {0, 0, 0, 0, 0, channels - x.channels, 0, 0};
  return value_of(node("Pad", Names{smaller.name, numbers(pads)}), channels);
}

GraphValue OnnxGraph::flatten(const GraphValue& x) {
  onnx::NodeProto& made = node("Flatten", Names{x.name});
  set_attribute(made, "axis", std::int64_t{1});
  return value_of(made, x.channels);
}

GraphValue OnnxGraph::linear(const GraphValue& x, const Parameter& weights, const Parameter& bias) {
  onnx::NodeProto& made = node("Gemm", Names{x.name, weight(weights.name), weight(bias.name)});
  set_attribute(made, "transB", std::int64_t{1});
  return value_of(made, weights.dims[0]);
}

GraphValue OnnxGraph::normalize(const GraphValue& x, std::span<const float> mean, std::span<const float> deviation) {
  const std::array<std::int64_t, 4> dims = {1, x.channels, 1, 1};
  const GraphValue centred = value_of(node("Sub", Names{x.name, constant("mean", dims, mean)}), x.channels);
  return value_of(node("Div", Names{centred.name, constant("deviation", dims, deviation)}), x.channels);
}

void OnnxGraph::set_output(const GraphValue& x, const std::string& name) {
  node("Identity", Names{x.name}).set_output(0, name);
}

}  // namespace lockstep
