#include "network/cost.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/grouped.hpp"
#include "base/text/text_table.hpp"

namespace lockstep {
namespace {

std::string window(const Size2d& kernel, const Size2d& stride) {
  return fmt::format("{}x{}{}", kernel.height, kernel.width, stride == 1 ? "" : "/" + stride.text());
}

// Short names of operations, as the table has them.
struct OperationText {
  std::string operator()(const op::Input&) const { return "input"; }
  std::string operator()(const op::Convolution& one) const {
    return "conv " + window(one.conv.kernel, one.conv.stride);
  }
  std::string operator()(const op::BatchNorm&) const { return "norm"; }
  std::string operator()(const op::Relu&) const { return "relu"; }
  std::string operator()(const op::LeakyRelu&) const { return "leaky relu"; }
  std::string operator()(const op::Clip&) const { return "clip"; }
  std::string operator()(const op::Sigmoid&) const { return "sigmoid"; }
  std::string operator()(const op::Tanh&) const { return "tanh"; }
  std::string operator()(const op::Gelu&) const { return "gelu"; }
  std::string operator()(const op::Scale&) const { return "scale"; }
  std::string operator()(const op::Shift&) const { return "shift"; }
  std::string operator()(const op::Dropout& one) const { return fmt::format("dropout {:.3g}", one.ratio); }
  std::string operator()(const op::Add&) const { return "add"; }
  std::string operator()(const op::Concat&) const { return "concat"; }
  std::string operator()(const op::MaxPool& one) const { return "max " + window(one.pool.kernel, one.pool.stride); }
  std::string operator()(const op::AveragePool& one) const {
    return "mean " + window(one.pool.kernel, one.pool.stride);
  }
  std::string operator()(const op::Blur& one) const { return "blur " + window(3, one.stride); }
  std::string operator()(const op::Subsample& one) const { return "subsample " + window(1, one.stride); }
  std::string operator()(const op::GlobalMeanPool&) const { return "mean"; }
  std::string operator()(const op::Flatten&) const { return "flatten"; }
  std::string operator()(const op::Unflatten&) const { return "unflatten"; }
  std::string operator()(const op::Linear&) const { return "linear"; }
};

std::vector<std::string> operations_of(const NetworkGraph& graph, const LayerSpec& layer) {
  std::vector<std::string> operations = {std::visit(OperationText(), graph.node(layer.main).operation)};
  if (layer.norm && *layer.norm != layer.main) operations.emplace_back("norm");
  if (layer.adds) operations.emplace_back("add");
  if (layer.activation == Activation::relu) operations.emplace_back("relu");
  if (layer.activation == Activation::gelu) operations.emplace_back("gelu");
  return operations;
}

std::string shape_text(const ValueShape& shape) {
  return shape.is_row() ? shape.text() : fmt::format("{}x{}x{}", shape.height, shape.width, shape.channels);
}

std::string millions(double count) { return count == 0 ? "" : fmt::format("{:.2f}", count / 1e6); }
std::string grouped_unless_0(std::int64_t count) { return count == 0 ? "" : grouped(count); }

}  // namespace

std::int64_t parameter_count(const NetworkGraph& graph, std::size_t index) {
  const GraphNode& node = graph.node(index);
  if (const auto* const one = node.as<op::Convolution>()) {
    const Conv2d& conv = one->conv;
    return conv.out_channels * (conv.in_channels * conv.kernel.area() + (one->has_bias ? 1 : 0));
  }
  if (node.as<op::BatchNorm>() != nullptr) return 2 * node.shape.channels;
  if (const auto* const one = node.as<op::Linear>()) return one->out * (one->in + (one->has_bias ? 1 : 0));
  return 0;
}

double multiply_adds(const NetworkGraph& graph, std::size_t index) {
  const GraphNode& node = graph.node(index);
  if (const auto* const one = node.as<op::Convolution>()) {
    const Conv2d& conv = one->conv;
    return static_cast<double>(node.shape.count()) * static_cast<double>(conv.in_channels * conv.kernel.area());
  }
  if (const auto* const one = node.as<op::Linear>())
    return static_cast<double>(one->in) * static_cast<double>(one->out);
  return 0;
}

double multiply_adds(const NetworkGraph& graph) {
  double sum = 0;
  for (std::size_t node = 0; node < graph.nodes().size(); ++node) sum += multiply_adds(graph, node);
  return sum;
}

std::vector<LayerSummary> layer_summaries(const NetworkGraph& graph, std::span<const LayerSpec> layers) {
  std::vector<LayerSummary> summaries = {{graph.node(0).name, {}, graph.node(0).shape}};
  for (const LayerSpec& layer : layers) {
    std::int64_t parameters = parameter_count(graph, layer.main);
    if (layer.norm && *layer.norm != layer.main) parameters += parameter_count(graph, *layer.norm);
    summaries.push_back({graph.node(layer.main).name, operations_of(graph, layer), graph.node(layer.output).shape,
                         parameters, multiply_adds(graph, layer.main)});
  }
  return summaries;
}

std::string network_table(const NetworkGraph& graph) {
  std::vector<TextColumn> table = {{"layer", {}, true}, {"operations", {}, true}, {"output"}, {"parameters"}, {"MMAC"}};
  std::int64_t parameters = 0;
  for (const LayerSummary& layer : layer_summaries(graph, fuse(graph))) {
    parameters += layer.parameters;
    add_row(table, {layer.name, fmt::format("{}", fmt::join(layer.operations, " ")), shape_text(layer.output),
                    grouped_unless_0(layer.parameters), millions(layer.multiply_adds)});
  }
  add_row(table, {"total", "", "", grouped(parameters), millions(multiply_adds(graph))});
  return fmt::format("{}", fmt::join(text_table(table, terminal_width), "\n"));
}

}  // namespace lockstep
