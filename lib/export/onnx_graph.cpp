#include "export/onnx_graph.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <numbers>

#include "network/onnx/onnx_network.hpp"

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

void set_window(onnx::NodeProto& node, const Size2d& kernel, const Size2d& stride, const Size2d& padding) {
  set_attribute(node, "kernel_shape", {kernel.height, kernel.width});
  set_attribute(node, "strides", {stride.height, stride.width});
  set_attribute(node, "pads", {padding.height, padding.width, padding.height, padding.width});
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

// Adds the operators of one node of the network. `x`: the values that it reads.
class OnnxGraph::AddNode {
 public:
  AddNode(OnnxGraph& graph, const GraphNode& node, const ValueShape& x_shape, Names x)
      : graph_(graph), node_(node), x_shape_(x_shape), x_(std::move(x)) {}

  OnnxValue operator()(const op::Input&) const { return x_.front(); }
  OnnxValue operator()(const op::Convolution& one) const {
    Names inputs = {x_.front(), graph_.weight(node_.name + ".weight")};
    if (one.has_bias) inputs.push_back(graph_.weight(node_.name + ".bias"));
    onnx::NodeProto& made = graph_.node("Conv", inputs);
    set_window(made, one.conv.kernel, one.conv.stride, one.conv.padding);
    return made.output(0);
  }
  OnnxValue operator()(const op::BatchNorm& one) const {
    Names inputs = {x_.front()};
    for (const char* array : {".weight", ".bias", ".running_mean", ".running_var"}) {
      inputs.push_back(graph_.weight(node_.name + array));
    }
    onnx::NodeProto& made = graph_.node("BatchNormalization", inputs);
    set_attribute(made, "epsilon", one.epsilon);
    return made.output(0);
  }
  OnnxValue operator()(const op::Relu&) const { return graph_.node("Relu", x_).output(0); }
  OnnxValue operator()(const op::LeakyRelu& one) const {
    onnx::NodeProto& made = graph_.node("LeakyRelu", x_);
    set_attribute(made, "alpha", one.slope);
    return made.output(0);
  }
  OnnxValue operator()(const op::Clip& one) const {
    const auto bound = [&](const char* name, float value) {
      return graph_.constant(fmt::format("{}_{}", name, graph_.graph_.initializer_size()), {}, {&value, 1});
    };
    const std::string low = bound("low", one.low);
    return graph_.node("Clip", Names{x_.front(), low, bound("high", one.high)}).output(0);
  }
  OnnxValue operator()(const op::Sigmoid&) const { return graph_.node("Sigmoid", x_).output(0); }
  OnnxValue operator()(const op::Tanh&) const { return graph_.node("Tanh", x_).output(0); }
  // As PyTorch writes it for operator sets before 20, which have no Gelu.
  OnnxValue operator()(const op::Gelu&) const {
    const OnnxValue quotient = with_constant("Div", x_.front(), std::numbers::sqrt2_v<float>);
    const OnnxValue erf = graph_.node("Erf", Names{quotient}).output(0);
    const OnnxValue factor = with_constant("Add", erf, 1);
    const OnnxValue product = graph_.node("Mul", Names{x_.front(), factor}).output(0);
    return with_constant("Mul", product, 0.5F);
  }
  OnnxValue operator()(const op::Scale& one) const { return with_constants("Mul", x_.front(), one.factors); }
  OnnxValue operator()(const op::Shift& one) const { return with_constants("Add", x_.front(), one.terms); }
  // Without training_mode, it is the identity.
  OnnxValue operator()(const op::Dropout& one) const {
    const std::string ratio =
        graph_.constant(fmt::format("ratio_{}", graph_.graph_.initializer_size()), {}, {&one.ratio, 1});
    return graph_.node("Dropout", Names{x_.front(), ratio}).output(0);
  }
  OnnxValue operator()(const op::Add&) const { return graph_.node("Add", x_).output(0); }
  OnnxValue operator()(const op::Concat&) const {
    onnx::NodeProto& made = graph_.node("Concat", x_);
    set_attribute(made, "axis", std::int64_t{1});
    return made.output(0);
  }
  OnnxValue operator()(const op::MaxPool& one) const { return pooled("MaxPool", one.pool).output(0); }
  OnnxValue operator()(const op::AveragePool& one) const {
    onnx::NodeProto& made = pooled("AveragePool", one.pool);
    set_attribute(made, "count_include_pad", std::int64_t{one.counts_padding ? 1 : 0});
    return made.output(0);
  }
  OnnxValue operator()(const op::Blur& one) const {
    constexpr std::array<float, 3> binomial = {0.25F, 0.5F, 0.25F};
    std::vector<float> kernels;
    for (std::int64_t channel = 0; channel < x_shape_.channels; ++channel) {
      for (const float down : binomial) {
        for (const float across : binomial) kernels.push_back(down * across);
      }
    }
    const std::array<std::int64_t, 4> dims = {x_shape_.channels, 1, 3, 3};
    const std::string name = fmt::format("blur_{}", graph_.graph_.initializer_size());
    onnx::NodeProto& made = graph_.node("Conv", Names{x_.front(), graph_.constant(name, dims, kernels)});
    set_attribute(made, "group", x_shape_.channels);
    set_window(made, 3, one.stride, 1);
    return made.output(0);
  }
  OnnxValue operator()(const op::Subsample& one) const {
    constexpr std::array<std::int64_t, 2> starts = {0, 0};
    constexpr std::array<std::int64_t, 2> ends = {INT64_MAX, INT64_MAX};
    constexpr std::array<std::int64_t, 2> axes = {2, 3};  // rows and columns
    const std::array<std::int64_t, 2> steps = {one.stride, one.stride};
    const Names sliced = {x_.front(), graph_.numbers(starts), graph_.numbers(ends), graph_.numbers(axes),
                          graph_.numbers(steps)};
    const OnnxValue smaller = graph_.node("Slice", sliced).output(0);
    const std::array<std::int64_t, 8> pads = {0, 0, 0, 0, 0, one.out_channels - x_shape_.channels, 0, 0};
    return graph_.node("Pad", Names{smaller, graph_.numbers(pads)}).output(0);
  }
  OnnxValue operator()(const op::GlobalMeanPool&) const {
    return flattened(graph_.node("GlobalAveragePool", x_).output(0));
  }
  OnnxValue operator()(const op::Flatten&) const { return flattened(x_.front()); }
  OnnxValue operator()(const op::Unflatten&) const {
    const std::array<std::int64_t, 4> shape = {0, x_shape_.channels, 1, 1};  // 0: the batch as it is
    return graph_.node("Reshape", Names{x_.front(), graph_.numbers(shape)}).output(0);
  }
  OnnxValue operator()(const op::Linear& one) const {
    Names inputs = {x_.front(), graph_.weight(node_.name + ".weight")};
    if (one.has_bias) inputs.push_back(graph_.weight(node_.name + ".bias"));
    onnx::NodeProto& made = graph_.node("Gemm", inputs);
    set_attribute(made, "transB", std::int64_t{1});
    return made.output(0);
  }

 private:
  onnx::NodeProto& pooled(const char* kind, const Pool2d& pool) const {
    onnx::NodeProto& made = graph_.node(kind, x_);
    set_window(made, pool.kernel, pool.stride, pool.padding);
    if (pool.ceil) set_attribute(made, "ceil_mode", std::int64_t{1});
    return made;
  }
  // Dims of one constant fit rows and maps.
  OnnxValue with_constants(const char* kind, const OnnxValue& x, std::span<const float> values) const {
    const auto count = std::ssize(values);
    const std::vector<std::int64_t> dims = count == 1 ? std::vector<std::int64_t>{} : std::vector{count, 1L, 1L};
    const std::string name = fmt::format("{}{}", exported_constants, graph_.graph_.initializer_size());
    return graph_.node(kind, Names{x, graph_.constant(name, dims, values)}).output(0);
  }
  OnnxValue with_constant(const char* kind, const OnnxValue& x, float value) const {
    return with_constants(kind, x, {&value, 1});
  }
  OnnxValue flattened(const OnnxValue& map) const {
    onnx::NodeProto& made = graph_.node("Flatten", Names{map});
    set_attribute(made, "axis", std::int64_t{1});
    return made.output(0);
  }

  OnnxGraph& graph_;
  const GraphNode& node_;
  const ValueShape& x_shape_;
  Names x_;
};

OnnxValue OnnxGraph::add(const NetworkGraph& network, const OnnxValue& images) {
  std::vector<OnnxValue> values = {images};
  for (const GraphNode& node : network.nodes()) {
    if (node.inputs.empty()) continue;  // the input
    Names x;
    for (const std::size_t input : node.inputs) x.push_back(values[input]);
    const ValueShape& x_shape = network.node(node.inputs.front()).shape;
    values.push_back(std::visit(AddNode(*this, node, x_shape, std::move(x)), node.operation));
  }
  return values.back();
}

OnnxValue OnnxGraph::normalize(const OnnxValue& x, std::span<const float> mean, std::span<const float> deviation) {
  const std::array<std::int64_t, 4> dims = {1, static_cast<std::int64_t>(mean.size()), 1, 1};
  const OnnxValue centred = node("Sub", Names{x, constant("mean", dims, mean)}).output(0);
  return node("Div", Names{centred, constant("deviation", dims, deviation)}).output(0);
}

void OnnxGraph::set_output(const OnnxValue& x, const std::string& name) {
  node("Identity", Names{x}).set_output(0, name);
}

}  // namespace lockstep
