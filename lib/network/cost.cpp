#include "network/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text/grouped.hpp"
#include "network/fusion.hpp"

namespace lockstep {
namespace {

using Row = std::array<std::string, 5>;

std::string kind_of(const GraphNode& node) {
  const auto window = [](std::int64_t kernel, std::int64_t stride) {
    return fmt::format("{}x{}{}", kernel, kernel, stride == 1 ? "" : fmt::format("/{}", stride));
  };
  if (const auto* const conv = node.as<op::Convolution>())
    return "conv " + window(conv->conv.kernel, conv->conv.stride);
  if (const auto* const pool = node.as<op::MaxPool>()) return "max " + window(pool->pool.kernel, pool->pool.stride);
  if (const auto* const blur = node.as<op::Blur>()) return "blur " + window(3, blur->stride);
  if (const auto* const kept = node.as<op::Subsample>()) return "subsample " + window(1, kept->stride);
  if (node.as<op::GlobalMeanPool>() != nullptr) return "mean";
  if (node.as<op::Flatten>() != nullptr) return "flatten";
  return "linear";
}

std::string text_of(const NetworkGraph& graph, const LayerSpec& layer) {
  std::string text = kind_of(graph.node(layer.main));
  if (layer.norm) text += " norm";
  if (layer.adds) text += " add";
  if (layer.activation == Activation::relu) text += " relu";
  return text;
}

std::string shape_text(const GraphNode& node) {
  const ValueShape& shape = node.shape;
  return shape.is_row() ? shape.text() : fmt::format("{}x{}x{}", shape.height, shape.width, shape.channels);
}

std::string millions(double count) { return count == 0 ? "" : fmt::format("{:.2f}", count / 1e6); }
std::string grouped_unless_0(std::int64_t count) { return count == 0 ? "" : grouped(count); }

}  // namespace

std::int64_t parameter_count(const NetworkGraph& graph, std::size_t index) {
  const GraphNode& node = graph.node(index);
  if (const auto* const one = node.as<op::Convolution>()) {
    const Conv2d& conv = one->conv;
    return conv.out_channels * (conv.in_channels * conv.kernel * conv.kernel + (one->has_bias ? 1 : 0));
  }
  if (node.as<op::BatchNorm>() != nullptr) return 2 * node.shape.channels;
  if (const auto* const one = node.as<op::Linear>()) return one->out * (one->in + 1);
  return 0;
}

double multiply_adds(const NetworkGraph& graph, std::size_t index) {
  const GraphNode& node = graph.node(index);
  if (const auto* const one = node.as<op::Convolution>()) {
    const Conv2d& conv = one->conv;
    return static_cast<double>(node.shape.count()) * static_cast<double>(conv.in_channels * conv.kernel * conv.kernel);
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

std::string network_table(const NetworkGraph& graph) {
  std::vector<Row> rows = {{"layer", "operations", "output", "parameters", "MMAC"}};
  rows.push_back({graph.node(0).name, "", shape_text(graph.node(0)), "", ""});
  std::int64_t parameters = 0;
  for (const LayerSpec& layer : fuse(graph)) {
    std::int64_t own = parameter_count(graph, layer.main);
    if (layer.norm) own += parameter_count(graph, *layer.norm);
    parameters += own;
    rows.push_back({graph.node(layer.main).name, text_of(graph, layer), shape_text(graph.node(layer.output)),
                    grouped_unless_0(own), millions(multiply_adds(graph, layer.main))});
  }
  rows.push_back({"total", "", "", grouped(parameters), millions(multiply_adds(graph))});
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    const std::string line = fmt::format("{:<{}}  {:<{}}  {:>{}}  {:>{}}  {:>{}}", row[0], widths[0], row[1], widths[1],
                                         row[2], widths[2], row[3], widths[3], row[4], widths[4]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  text.pop_back();
  return text;
}

}  // namespace lockstep
