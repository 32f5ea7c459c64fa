// ONNX operators with parameters: convolutions, norms and linear layers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "network/onnx/onnx_converter.hpp"

namespace lockstep {
namespace {

const std::array<float, 9> binomial = {1 / 16.0F, 2 / 16.0F, 1 / 16.0F, 2 / 16.0F, 4 / 16.0F,
                                       2 / 16.0F, 1 / 16.0F, 2 / 16.0F, 1 / 16.0F};

void transpose_array(NamedArray& matrix) {
  const auto rows = static_cast<std::size_t>(matrix.dims[0]);
  const auto columns = static_cast<std::size_t>(matrix.dims[1]);
  std::vector<float> turned(matrix.values.size());
  for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = matrix.values[i % rows * columns + i / rows];
  matrix.values = std::move(turned);
  std::swap(matrix.dims[0], matrix.dims[1]);
}

}  // namespace

void OnnxConverter::conv() {
  const onnx::TensorProto& weight = constant_at(1);
  if (weight.dims_size() != 4) node_->refuse("only convolutions over rows and columns are possible");
  const std::size_t x = node_at(0);
  const OnnxNode::Window window = node_->window();
  const Size2d kernel(weight.dims(2), weight.dims(3));
  const Integers sides = {kernel.height, kernel.width};
  if (node_->integers("kernel_shape", sides) != sides) {
    node_->damaged("has a kernel_shape that its weight does not have");
  }
  if (is_blur(weight, shape_of(x), window)) {
    give_node(op::Blur{window.stride.height}, {x});
    return;
  }
  node_->require_integer("group", 1, 1);
  const Conv2d conv{.in_channels = weight.dims(1),
                    .out_channels = weight.dims(0),
                    .kernel = kernel,
                    .stride = window.stride,
                    .padding = window.padding};
  if (std::max(kernel.height, kernel.width) > OnnxNode::largest_number) {
    node_->refuse(fmt::format("a kernel of {} is not possible. Kernels have up to {} rows and columns", kernel.text(),
                              OnnxNode::largest_number));
  }
  if (conv.padding.height >= kernel.height || conv.padding.width >= kernel.width) {
    node_->refuse(fmt::format(
        "pads of {} are not possible with a kernel of {}. Pads are smaller than the kernel in each dimension",
        conv.padding.text(), kernel.text()));
  }
  const std::string name = layer_name(weight);
  const bool has_bias = node_->has_input(2) && !constants_.is_computed_zero(node_->input(2), conv.out_channels);
  give_node(op::Convolution{.conv = conv, .has_bias = has_bias}, {x}, name);
  keep(name + ".weight", weight, {conv.out_channels, conv.in_channels, kernel.height, kernel.width});
  if (has_bias) keep(name + ".bias", constant_at(2), {conv.out_channels});
}

bool OnnxConverter::is_blur(const onnx::TensorProto& weight, const ValueShape& shape,
                            const OnnxNode::Window& window) const {
  const bool is_by_channel = node_->integer("group", 1) == shape.channels && shape.channels > 1;
  const bool has_stride = window.stride == 1 || window.stride == 2;
  if (!is_by_channel || node_->has_input(2) || window.padding != 1 || !has_stride) return false;
  if (!std::ranges::equal(weight.dims(), Integers{shape.channels, 1, 3, 3})) return false;
  const std::vector<float> values = file_.floats(weight);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != binomial[i % binomial.size()]) return false;
  }
  return true;
}

void OnnxConverter::batch_norm() {
  const std::size_t x = node_at(0);
  const std::int64_t channels = shape_of(x).channels;
  const float epsilon = node_->number("epsilon", NormWeights{}.epsilon);
  const bool is_small = epsilon > 0 && epsilon <= 1;
  if (!is_small) node_->refuse(fmt::format("epsilon is {}. Only numbers above 0, up to 1, are possible", epsilon));
  if (!constants_.is_in_file(node_->input(1))) {
    node_->refuse("its scale and shift are no parameters. Use affine=True in PyTorch");
  }
  const std::string name = layer_name(constant_at(1));
  if (shape_of(x).is_row()) {
    const std::size_t map = added(op::Unflatten{}, {x}, "");
    give_node(op::Flatten{}, {added(op::BatchNorm{.epsilon = epsilon}, {map}, name)});
  } else {
    give_node(op::BatchNorm{.epsilon = epsilon}, {x}, name);
  }
  const std::array<const char*, 4> endings = {".weight", ".bias", ".running_mean", ".running_var"};
  constexpr float usual = 0.9F;  // PyTorch's 0.1: ONNX has the share of the old value
  const float momentum = node_->number("momentum", usual);
  constexpr float rounding = 1e-6F;
  if (momentum_.empty() && std::abs(momentum - usual) > rounding) {
    momentum_ = fmt::format("norm '{}' has momentum {:.4g} (in PyTorch). Training uses --norm-momentum for all norms",
                            name, 1 - momentum);
  }
  const NamedArray* last = nullptr;
  for (int i = 0; i < std::ssize(endings); ++i) {
    last = &keep(name + endings[static_cast<std::size_t>(i)], constant_at(i + 1), {channels});
  }
  if (std::ranges::any_of(last->values, [](float variance) { return variance < 0; })) {
    node_->refuse("a running variance is negative");
  }
}

void OnnxConverter::gemm() {
  node_->require_number("alpha", 1, 1);
  node_->require_number("beta", 1, 1);
  node_->require_integer("transA", 0, 0);
  give_linear(constant_at(1), node_->integer("transB", 0) != 0, node_->has_input(2));
}

// A linear layer without bias: the exporters may write Transpose of the weight before it.
void OnnxConverter::matmul() {
  const auto transposed = transposed_.find(node_->input(1));
  const bool is_transposed = transposed != transposed_.end();
  give_linear(is_transposed ? *transposed->second : constant_at(1), is_transposed, false);
}

void OnnxConverter::transpose() {
  const onnx::TensorProto* const weight = as_constant(0);
  if (weight == nullptr || weight->dims_size() != 2 || node_->integers("perm", {1, 0}) != Integers{1, 0}) {
    node_->refuse("only the weight of a linear layer can be transposed. Use torch.flatten(x, 1) before such a layer");
  }
  const std::string& name = node_->output();
  const bool is_new = constants_.find(name) == nullptr && !values_.contains(name);
  if (!is_new || !transposed_.emplace(name, weight).second) {
    file_.damaged(fmt::format("two values have the name '{}'", short_text(name)));
  }
}

void OnnxConverter::give_linear(const onnx::TensorProto& weight, bool is_transposed, bool has_bias) {
  if (std::holds_alternative<MeanValue>(input(0))) {
    node_->refuse("it reads a pooled map that is not flattened. Flatten the mean of each channel");
  }
  const std::size_t x = node_at(0);
  if (weight.dims_size() != 2) node_->refuse("its weight is not a matrix");
  const std::int64_t out = weight.dims(is_transposed ? 0 : 1);
  const std::int64_t in = weight.dims(is_transposed ? 1 : 0);
  const std::string name = layer_name(weight);
  give_node(op::Linear{.in = in, .out = out, .has_bias = has_bias}, {x}, name);
  NamedArray& kept = keep(name + ".weight", weight, {weight.dims(0), weight.dims(1)});
  if (!is_transposed) transpose_array(kept);
  if (has_bias) keep(name + ".bias", constant_at(2), {out});
}

}  // namespace lockstep
