#include "network/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/error.hpp"

namespace lockstep {
namespace {

// Shape inference of one node. `shapes` are those of its inputs.
class OutputShape {
 public:
  OutputShape(const std::string& name, const std::vector<ValueShape>& shapes)
      : name_(name), shapes_(shapes), x_(shapes.front()) {}

  ValueShape operator()(const op::Input&) const { return x_; }
  ValueShape operator()(const op::Convolution& one) const {
    require_map();
    require(x_.channels == one.conv.in_channels, Failure::usage,
            "layer '{}' cannot take {}: it needs {} channels. Check that the model fits the data.", name_, x_.text(),
            one.conv.in_channels);
    const Conv1d rows = one.conv.rows();
    const Conv1d columns = one.conv.columns();
    require_pixels({rows.least_size(), columns.least_size()});
    return {rows.out_size(x_.height), columns.out_size(x_.width), one.conv.out_channels};
  }
  ValueShape operator()(const op::BatchNorm&) const {
    require_map();
    return x_;
  }
  ValueShape operator()(const op::Relu&) const { return x_; }
  ValueShape operator()(const op::LeakyRelu&) const { return x_; }
  ValueShape operator()(const op::Clip&) const { return x_; }
  ValueShape operator()(const op::Sigmoid&) const { return x_; }
  ValueShape operator()(const op::Tanh&) const { return x_; }
  ValueShape operator()(const op::Gelu&) const { return x_; }
  ValueShape operator()(const op::Scale& one) const { return with_constants(one.factors.size()); }
  ValueShape operator()(const op::Shift& one) const { return with_constants(one.terms.size()); }
  ValueShape operator()(const op::Dropout&) const { return x_; }
  ValueShape operator()(const op::Add&) const {
    assert(shapes_.size() == 2);
    require(shapes_[1] == x_, Failure::usage,
            "'{}' cannot add {} and {}: the shapes differ. Check that the model fits the data.", name_, x_.text(),
            shapes_[1].text());
    return x_;
  }
  ValueShape operator()(const op::Concat&) const {
    require_map();
    ValueShape sum = x_;
    sum.channels = 0;
    for (const ValueShape& shape : shapes_) {
      require(shape.height == x_.height && shape.width == x_.width, Failure::usage,
              "'{}' cannot join the channels of {} and {}: the sizes differ. Check that the model fits the data.",
              name_, x_.text(), shape.text());
      sum.channels += shape.channels;
    }
    require(sum.channels <= op::Concat::most_channels, Failure::usage, "'{}' joins too many channels: {}.", name_,
            sum.channels);
    return sum;
  }
  ValueShape operator()(const op::MaxPool& one) const { return pooled(one.pool); }
  ValueShape operator()(const op::AveragePool& one) const { return pooled(one.pool); }
  ValueShape operator()(const op::Blur& one) const {
    require_map();
    return strided(one.stride, x_.channels);
  }
  ValueShape operator()(const op::Subsample& one) const {
    require_map();
    require(one.out_channels >= x_.channels, Failure::usage, "'{}' cannot make {} channels of {}.", name_,
            one.out_channels, x_.channels);
    return strided(one.stride, one.out_channels);
  }
  ValueShape operator()(const op::GlobalMeanPool&) const {
    require_map();
    return {0, 0, x_.channels};
  }
  ValueShape operator()(const op::Flatten&) const {
    require_map();
    constexpr std::int64_t most_features = std::int64_t{1} << 31;
    require(x_.channels <= most_features / x_.height / x_.width, Failure::usage,
            "'{}' cannot make a row of {}: it is too large.", name_, x_.text());
    return {0, 0, x_.count()};
  }
  ValueShape operator()(const op::Unflatten&) const {
    require(x_.is_row(), Failure::usage, "'{}' needs a row, not {}.", name_, x_.text());
    return {1, 1, x_.channels};
  }
  ValueShape operator()(const op::Linear& one) const {
    require(x_.is_row() && x_.channels == one.in, Failure::usage,
            "layer '{}' cannot take {}: it has weights for {} features. Use images of the size that the model was made "
            "for (--image-size).",
            name_, x_.text(), one.in);
    return {0, 0, one.out};
  }

 private:
  ValueShape with_constants(std::size_t count) const {
    if (count == 1) return x_;
    require_map();
    require(std::cmp_equal(count, x_.channels), Failure::usage, "'{}' has {} constants for {} channels.", name_, count,
            x_.channels);
    return x_;
  }
  void require_map() const {
    require(!x_.is_row(), Failure::usage, "layer '{}' cannot take a row of {} features: it needs a map.", name_,
            x_.channels);
  }
  void require_pixels(const Size2d& least) const {
    require(x_.height >= least.height && x_.width >= least.width, Failure::usage,
            "layer '{}' cannot take {}: it needs at least {} x {} pixels. Choose another --model or larger samples.",
            name_, x_.text(), std::max<std::int64_t>(least.height, 1), std::max<std::int64_t>(least.width, 1));
  }
  ValueShape strided(std::int64_t stride, std::int64_t channels) const {
    return {(x_.height + stride - 1) / stride, (x_.width + stride - 1) / stride, channels};
  }
  ValueShape pooled(const Pool2d& pool) const {
    require_map();
    require_pixels(pool.least_size());
    return {pool.out_size(x_.height), pool.out_size(x_.width), x_.channels};
  }

  const std::string& name_;
  const std::vector<ValueShape>& shapes_;
  const ValueShape& x_;  // of the first input
};

struct Name {
  const char* operator()(const op::Input&) const { return "Input"; }
  const char* operator()(const op::Convolution&) const { return "Conv"; }
  const char* operator()(const op::BatchNorm&) const { return "BatchNormalization"; }
  const char* operator()(const op::Relu&) const { return "Relu"; }
  const char* operator()(const op::LeakyRelu&) const { return "LeakyRelu"; }
  const char* operator()(const op::Clip&) const { return "Clip"; }
  const char* operator()(const op::Sigmoid&) const { return "Sigmoid"; }
  const char* operator()(const op::Tanh&) const { return "Tanh"; }
  const char* operator()(const op::Gelu&) const { return "Gelu"; }
  const char* operator()(const op::Scale&) const { return "Mul"; }
  const char* operator()(const op::Shift&) const { return "Shift"; }
  const char* operator()(const op::Dropout&) const { return "Dropout"; }
  const char* operator()(const op::Add&) const { return "Add"; }
  const char* operator()(const op::Concat&) const { return "Concat"; }
  const char* operator()(const op::MaxPool&) const { return "MaxPool"; }
  const char* operator()(const op::AveragePool&) const { return "AveragePool"; }
  const char* operator()(const op::Blur&) const { return "Blur"; }
  const char* operator()(const op::Subsample&) const { return "Subsample"; }
  const char* operator()(const op::GlobalMeanPool&) const { return "GlobalAveragePool"; }
  const char* operator()(const op::Flatten&) const { return "Flatten"; }
  const char* operator()(const op::Unflatten&) const { return "Unflatten"; }
  const char* operator()(const op::Linear&) const { return "Gemm"; }
};

}  // namespace

std::string ValueShape::text() const {
  return is_row() ? std::to_string(channels) : fmt::format("{} x {} x {}", height, width, channels);
}

ValueShape sample_shape(const Shape& shape) {
  return shape.ndim == 2 ? ValueShape{0, 0, shape[1]} : ValueShape{shape[1], shape[2], shape[3]};
}

std::string operation_name(const Operation& operation) { return std::visit(Name(), operation); }

NetworkGraph::NetworkGraph(const ValueShape& input) { nodes_.push_back({"input", op::Input(), {}, input}); }

std::size_t NetworkGraph::add(std::string name, const Operation& operation, std::vector<std::size_t> inputs) {
  assert(!inputs.empty() && std::ranges::all_of(inputs, [&](std::size_t one) { return one < nodes_.size(); }));
  if (name.empty()) name = fmt::format("{}_{}", operation_name(operation), nodes_.size());
  assert(std::ranges::find(nodes_, name, &GraphNode::name) == nodes_.end());
  std::vector<ValueShape> shapes;
  for (const std::size_t input : inputs) shapes.push_back(nodes_[input].shape);
  const ValueShape shape = std::visit(OutputShape(name, shapes), operation);
  nodes_.push_back({std::move(name), operation, std::move(inputs), shape});
  return nodes_.size() - 1;
}

std::vector<int> NetworkGraph::reader_counts() const {
  std::vector<int> counts(nodes_.size());
  for (const GraphNode& node : nodes_) {
    for (const std::size_t input : node.inputs) ++counts[input];
  }
  return counts;
}

NetworkGraph NetworkGraph::for_input(const ValueShape& input) const {
  NetworkGraph other(input);
  for (std::size_t index = 1; index < nodes_.size(); ++index) {
    other.add(nodes_[index].name, nodes_[index].operation, nodes_[index].inputs);
  }
  return other;
}

NetworkGraph NetworkGraph::with_outputs(std::int64_t outputs) const {
  // Constants and activations may follow it.
  std::size_t head = nodes_.size() - 1;
  while (node(head).as<op::Linear>() == nullptr && node(head).shape.is_row() && node(head).inputs.size() == 1 &&
         node(node(head).inputs[0]).shape.is_row()) {
    head = node(head).inputs[0];
  }
  require(node(head).as<op::Linear>() != nullptr, Failure::usage,
          "the network ends with the {} '{}', not with a linear layer (Gemm) that --new-head could replace. Set its "
          "classes in PyTorch before the export.",
          operation_name(nodes_.back().operation), nodes_.back().name);
  NetworkGraph other(node(0).shape);
  for (std::size_t index = 1; index < nodes_.size(); ++index) {
    Operation operation = nodes_[index].operation;
    if (index == head) std::get<op::Linear>(operation).out = outputs;
    other.add(nodes_[index].name, operation, nodes_[index].inputs);
  }
  return other;
}

}  // namespace lockstep
