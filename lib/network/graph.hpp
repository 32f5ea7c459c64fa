// A network as data: a directed acyclic graph of operations on values. It has the shapes of all values and the names of
// all parameters, but no memory and no device. models/ builds graphs, fusion.hpp groups their nodes into layers, and
// nn/fused_network runs those.
//
// The first node is the input, the last one the output. Nodes read earlier nodes only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "device/ops.hpp"

namespace lockstep {

// Shape of a value for one sample: a map of height x width pixels, or a row of features, whose height and width are 0.
struct ValueShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;  // of a row: features

  bool is_row() const { return height == 0; }
  std::int64_t count() const { return is_row() ? channels : height * width * channels; }
  std::string text() const;  // "32 x 32 x 3", "10"
  bool operator==(const ValueShape&) const = default;
};

// Of one sample of a tensor: a map [n, h, w, c], or a row [n, features].
ValueShape sample_shape(const Shape& shape);

// Initial values of weights: those of torchvision's ResNets, or PyTorch's default.
enum class WeightScheme : std::uint8_t { he_normal_fan_out, uniform_fan_in };

// Operations. A node's name is PyTorch's name of the module: its parameters are NAME.weight, NAME.bias and so on.
namespace op {
struct Input {};
struct Convolution {
  Conv2d conv;
  bool has_bias = false;
  WeightScheme scheme = WeightScheme::he_normal_fan_out;
  bool begins_with_identity = false;  // see Initial
};
struct BatchNorm {
  float initial_scale = 1.0F;
  float epsilon = NormWeights{}.epsilon;
};
struct Relu {};
struct LeakyRelu {
  static constexpr float largest_slope = 1e6F;

  float slope;  // of negative values, at least 0
};
// Values within [low, high].
struct Clip {
  static constexpr float largest_bound = std::numeric_limits<float>::max();

  float low;
  float high;
};
struct Sigmoid {};
struct Tanh {};
struct Gelu {};  // x * Phi(x), Phi the normal distribution: nn.GELU() without approximation
// Products with, or sums with, constants that are not trained: one, or one for each channel of a map.
struct Scale {
  std::vector<float> factors;
};
struct Shift {
  std::vector<float> terms;
};
// Drops elements in training, each with this probability: see Ops::drop.
struct Dropout {
  static constexpr float largest_ratio = 0.999F;

  float ratio;
};
// The sum of two values of the same shape.
struct Add {};
// The channels of maps of the same size, one after the other.
struct Concat {
  static constexpr std::size_t most_inputs = 4096;
  static constexpr std::int64_t most_channels = 1 << 24;
};
struct MaxPool {
  Pool2d pool;
};
// Means of windows: see Ops::average_pool_forward.
struct AveragePool {
  Pool2d pool;
  bool counts_padding = false;
};
// The binomial blur of Zhang 2019 with stride 1 or 2: see Ops::blur_forward.
struct Blur {
  std::int64_t stride;
};
// Parameter-free shortcut (He et al. 2015, option A): every stride-th pixel; the new channels are zero.
struct Subsample {
  std::int64_t stride;
  std::int64_t out_channels;
};
struct GlobalMeanPool {};  // from a map to a row
struct Flatten {};         // from a map to a row, in PyTorch's order: channel, row, column
struct Unflatten {};       // from a row to a map of one pixel
struct Linear {
  std::int64_t in;
  std::int64_t out;
  bool has_bias = true;
};
}  // namespace op

using Operation =
    std::variant<op::Input, op::Convolution, op::BatchNorm, op::Relu, op::LeakyRelu, op::Clip, op::Sigmoid, op::Tanh,
                 op::Gelu, op::Scale, op::Shift, op::Dropout, op::Add, op::Concat, op::MaxPool, op::AveragePool,
                 op::Blur, op::Subsample, op::GlobalMeanPool, op::Flatten, op::Unflatten, op::Linear>;

// ONNX's name of its kind: "Conv". Blur, Subsample, Shift and Unflatten have names of our own.
std::string operation_name(const Operation& operation);

struct GraphNode {
  std::string name;  // unique
  Operation operation;
  std::vector<std::size_t> inputs;
  ValueShape shape;  // of its value

  template <typename Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&operation);
  }
};

class NetworkGraph {
 public:
  explicit NetworkGraph(const ValueShape& input);

  // Returns the index of the node. Without a name, it is named after its kind and index. Throws Error(usage) that names
  // the node if it cannot take its inputs' shapes. Nodes that read no parameters need no name.
  std::size_t add(std::string name, const Operation& operation, std::vector<std::size_t> inputs);

  const std::vector<GraphNode>& nodes() const { return nodes_; }
  const GraphNode& node(std::size_t index) const { return nodes_.at(index); }
  // The number of nodes that read each node's value.
  std::vector<int> reader_counts() const;

  // The same network for an input of another size. Throws Error(usage) as add().
  NetworkGraph for_input(const ValueShape& input) const;
  // The same network with another number of outputs. Throws Error(usage) unless it ends with a Linear, behind which
  // only elementwise operations may stand.
  NetworkGraph with_outputs(std::int64_t outputs) const;

 private:
  std::vector<GraphNode> nodes_;
};

}  // namespace lockstep
