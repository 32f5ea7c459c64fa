// One function for each operator of ONNX that can be read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "network/onnx/onnx_converter.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t most_channels = 1 << 24;
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

const std::map<std::string, OnnxConverter::Convert>& OnnxConverter::operators() {
  static const std::map<std::string, Convert> all = {{"Add", &OnnxConverter::add},
                                                     {"AveragePool", &OnnxConverter::average_pool},
                                                     {"BatchNormalization", &OnnxConverter::batch_norm},
                                                     {"Clip", &OnnxConverter::clip},
                                                     {"Concat", &OnnxConverter::concat},
                                                     {"Conv", &OnnxConverter::conv},
                                                     {"Div", &OnnxConverter::divide},
                                                     {"Dropout", &OnnxConverter::dropout},
                                                     {"Erf", &OnnxConverter::erf},
                                                     {"Flatten", &OnnxConverter::flatten},
                                                     {"Gelu", &OnnxConverter::gelu},
                                                     {"Gemm", &OnnxConverter::gemm},
                                                     {"GlobalAveragePool", &OnnxConverter::global_average_pool},
                                                     {"Identity", &OnnxConverter::identity},
                                                     {"LeakyRelu", &OnnxConverter::leaky_relu},
                                                     {"MatMul", &OnnxConverter::matmul},
                                                     {"MaxPool", &OnnxConverter::max_pool},
                                                     {"Mul", &OnnxConverter::multiply},
                                                     {"Pad", &OnnxConverter::pad},
                                                     {"ReduceMean", &OnnxConverter::reduce_mean},
                                                     {"Relu", &OnnxConverter::relu},
                                                     {"Reshape", &OnnxConverter::reshape},
                                                     {"Shape", &OnnxConverter::shape},
                                                     {"Sigmoid", &OnnxConverter::sigmoid},
                                                     {"Slice", &OnnxConverter::slice},
                                                     {"Sub", &OnnxConverter::subtract},
                                                     {"Tanh", &OnnxConverter::tanh},
                                                     {"Transpose", &OnnxConverter::transpose}};
  return all;
}

void OnnxConverter::refuse_operator() const {
  const std::string& kind = node_->kind();
  if (kind == "Softmax" || kind == "LogSoftmax") {
    node_->refuse("the loss includes it. Export a model that returns logits");
  }
  constexpr std::array<std::string_view, 4> of_shapes = {"Gather", "Shape", "Squeeze", "Unsqueeze"};
  if (std::ranges::count(of_shapes, kind) > 0 || operators().contains(kind)) {
    node_->refuse(
        "shapes cannot be computed. Export without dynamic_axes and dynamic_shapes, flatten by torch.flatten(x, 1), "
        "and "
        "use no layer that rearranges its input");
  }
  node_->refuse(
      "Lockstep has no such operator. It has Add, AveragePool, BatchNormalization, Clip, Concat, Conv, Div, Dropout, "
      "Flatten, Gelu, Gemm, GlobalAveragePool, Identity, LeakyRelu, MaxPool, Mul, ReduceMean, Relu, Sigmoid, Sub and "
      "Tanh");
}

void OnnxConverter::identity() { give(input(0)); }

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

void OnnxConverter::relu() { give_node(op::Relu{}, {node_at(0)}); }

void OnnxConverter::leaky_relu() {
  constexpr float usual = 0.01F;
  const float slope = node_->number("alpha", usual);
  const bool is_possible = slope >= 0 && slope <= op::LeakyRelu::largest_slope;
  if (!is_possible) {
    node_->refuse(
        fmt::format("alpha is {}. Only numbers from 0 to {} are possible", slope, op::LeakyRelu::largest_slope));
  }
  give_node(op::LeakyRelu{slope}, {node_at(0)});
}

void OnnxConverter::clip() {
  if (node_->attribute("min") != nullptr || node_->attribute("max") != nullptr) {
    node_->damaged("has bounds as attributes, which only operator sets before 11 have");
  }
  const op::Clip clip{bound_at(1, -op::Clip::largest_bound), bound_at(2, op::Clip::largest_bound)};
  const bool is_possible =
      clip.low < clip.high && clip.low >= -op::Clip::largest_bound && clip.high <= op::Clip::largest_bound;
  if (!is_possible) node_->refuse(fmt::format("bounds of {} and {} are not possible", clip.low, clip.high));
  give_node(clip, {node_at(0)});
}

float OnnxConverter::bound_at(int index, float otherwise) const {
  if (!node_->has_input(index)) return otherwise;
  const std::vector<float> values = file_.floats(constant_at(index));
  if (values.size() != 1) node_->refuse("only bounds of one number are possible");
  return values.front();
}

void OnnxConverter::shape() {
  const ValueShape& shape = shape_of(node_at(0));
  const Integers of_map = {0, shape.channels, shape.height, shape.width};
  constants_.give_shape(*node_, shape.is_row() ? Integers{0, shape.channels} : of_map);
}

void OnnxConverter::sigmoid() { give_node(op::Sigmoid{}, {node_at(0)}); }
void OnnxConverter::tanh() { give_node(op::Tanh{}, {node_at(0)}); }

void OnnxConverter::add() {
  if (add_in_gelu()) return;
  if (as_constant(0) != nullptr) return give_shifted(0, 1);
  if (as_constant(1) != nullptr) return give_shifted(1, 1);
  give_node(op::Add{}, {node_at(0), node_at(1)});
}

void OnnxConverter::multiply() {
  if (multiply_in_gelu()) return;
  const int array = as_constant(0) != nullptr ? 0 : 1;
  if (as_constant(array) == nullptr) node_->refuse("only products with constants are possible");
  const std::size_t x = node_at(1 - array);
  give_node(op::Scale{constants_at(array, x)}, {x});
}

// The other input plus or minus an array.
void OnnxConverter::give_shifted(int array, float sign) {
  const std::size_t x = node_at(1 - array);
  std::vector<float> terms = constants_at(array, x);
  for (float& term : terms) term *= sign;
  give_node(op::Shift{std::move(terms)}, {x});
}

// One, or one for each channel.
std::vector<float> OnnxConverter::constants_at(int index, std::size_t x) {
  const onnx::TensorProto& tensor = constant_at(index);
  const Integers dims(tensor.dims().begin(), tensor.dims().end());
  const ValueShape& shape = shape_of(x);
  const bool is_one = std::ranges::count(dims, 1) == std::ssize(dims);
  const bool is_by_channel = dims == Integers{shape.channels, 1, 1} || dims == Integers{1, shape.channels, 1, 1};
  if (!is_one && (shape.is_row() || !is_by_channel)) {
    node_->refuse(fmt::format("'{}' has the shape {}. Only one number, or one for each channel of a map, is possible",
                              short_text(tensor.name()), short_text(dims)));
  }
  const bool is_known_constant = tensor.name().starts_with(exported_constants);
  if (constant_name_.empty() && !is_known_constant && constants_.is_in_file(node_->input(index))) {
    constant_name_ = tensor.name();
  }
  return file_.floats(tensor);
}

void OnnxConverter::dropout() {
  constexpr float usual = 0.5F;
  const float ratio = bound_at(1, usual);
  const bool is_possible = ratio >= 0 && ratio <= op::Dropout::largest_ratio;  // NaN is not
  if (!is_possible) {
    node_->refuse(
        fmt::format("its ratio is {}. Only numbers from 0 to {} are possible", ratio, op::Dropout::largest_ratio));
  }
  if (ratio == 0) return give(input(0));
  give_node(op::Dropout{ratio}, {node_at(0)});
}

void OnnxConverter::concat() {
  std::vector<std::size_t> inputs;
  for (int i = 0; i < node_->input_count(); ++i) inputs.push_back(node_at(i));
  if (inputs.size() > op::Concat::most_inputs) {
    node_->refuse(fmt::format("it has more than {} inputs", op::Concat::most_inputs));
  }
  const std::int64_t axis = node_->integer("axis", 0);
  if (axis != 1 && axis != -3) node_->refuse(fmt::format("axis is {}. Only 1 is possible: channels", axis));
  give_node(op::Concat{}, inputs);
}

bool OnnxConverter::flag(const char* name) const {
  const std::int64_t value = node_->integer(name, 0);
  if (value != 0 && value != 1) node_->damaged(fmt::format("has a {} of {}", name, value));
  return value == 1;
}

// Of MaxPool and AveragePool.
Pool2d OnnxConverter::pool_window() const {
  const OnnxNode::Window window = node_->window();
  const Size2d shape = node_->size("kernel_shape", 0);
  if (!shape.is_square() || !window.stride.is_square() || !window.padding.is_square()) {
    node_->refuse("pooling is possible only with the same kernel_shape, strides and pads for rows and columns");
  }
  const std::int64_t kernel = shape.height;
  const std::int64_t padding = window.padding.height;
  if (padding >= kernel || kernel > Pool2d::largest_kernel) {
    node_->refuse(
        fmt::format("a window of {} with pads of {} is not possible. Windows have up to {} x {} pixels, and "
                    "pads are smaller",
                    kernel, padding, Pool2d::largest_kernel, Pool2d::largest_kernel));
  }
  return {.kernel = kernel, .stride = window.stride.height, .padding = padding, .ceil = flag("ceil_mode")};
}

void OnnxConverter::max_pool() {
  node_->require_integer("storage_order", 0, 0);
  give_node(op::MaxPool{pool_window()}, {node_at(0)});
}

void OnnxConverter::global_average_pool() { pool_mean(true); }

// PyTorch's older exporter writes padding that counts as Pad.
void OnnxConverter::average_pool() {
  if (const auto* const padded = std::get_if<PaddedValue>(&input(0))) {
    Pool2d pool = pool_window();
    if (pool.padding != 0 || padded->padding >= pool.kernel) node_->refuse("its map is padded too much");
    const ValueShape& shape = shape_of(padded->node);
    const auto windows_after_pad = [&](std::int64_t size) {
      const std::int64_t padded_size = size + 2 * padded->padding;
      return padded_size < pool.least_size() ? 0 : pool.out_size(padded_size);
    };
    const std::int64_t rows = windows_after_pad(shape.height);
    const std::int64_t columns = windows_after_pad(shape.width);
    pool.padding = padded->padding;
    if (rows != pool.out_size(shape.height) || columns != pool.out_size(shape.width)) {
      node_->refuse("it has windows in the zeros of a Pad alone. Use the padding of nn.AvgPool2d instead");
    }
    give_node(op::AveragePool{pool, true}, {padded->node});
    return;
  }
  const std::size_t x = node_at(0);
  const Integers whole = {shape_of(x).height, shape_of(x).width};
  if (node_->integers("kernel_shape", {}) == whole && node_->window().padding == 0) return pool_mean(true);
  give_node(op::AveragePool{pool_window(), flag("count_include_pad")}, {x});
}

void OnnxConverter::reduce_mean() {
  const Integers axes = node_->has_input(1) ? file_.integers(constant_at(1)) : node_->integers("axes", {});
  const bool is_over_space =
      axes == Integers{2, 3} || axes == Integers{-2, -1} || axes == Integers{-1, -2} || axes == Integers{3, 2};
  if (!is_over_space) {
    node_->refuse(fmt::format("axes are {}. Only the mean over rows and columns is possible", short_text(axes)));
  }
  pool_mean(node_->integer("keepdims", 1) != 0);
}

void OnnxConverter::pool_mean(bool keeps_dims) {
  const std::size_t x = node_at(0);
  if (keeps_dims) return give(MeanValue{x});
  give_node(op::GlobalMeanPool{}, {x});
}

void OnnxConverter::flatten() {
  node_->require_integer("axis", 1, 1);
  give_flat();
}

void OnnxConverter::reshape() {
  const Integers shape = file_.integers(constant_at(1));
  // With images of another size than the file's, there are other features, which a Gemm then names.
  const bool keeps_zeros = node_->integer("allowzero", 0) != 0 && std::ranges::count(shape, 0) > 0;
  const bool is_possible = std::ranges::all_of(shape, [](std::int64_t dim) { return dim >= -1; }) &&
                           std::ranges::count(shape, -1) <= 1 && !keeps_zeros;
  if (is_possible && shape.size() == 4 && shape[2] == 1 && shape[3] == 1) {
    const std::size_t x = node_at(0);
    if (shape[1] == -1 || shape[1] == shape_of(x).channels) return give_node(op::Unflatten{}, {x});
  }
  if (!is_possible || shape.size() != 2 || shape[1] == 0) {
    node_->refuse(fmt::format("the shape {} is not possible. Use torch.flatten(x, 1)", short_text(shape)));
  }
  give_flat();
}

void OnnxConverter::give_flat() {
  if (const auto* const mean = std::get_if<MeanValue>(&input(0))) return give_node(op::GlobalMeanPool{}, {mean->node});
  const std::size_t x = node_at(0);
  if (shape_of(x).is_row()) return give(NodeValue{x});
  give_node(op::Flatten{}, {x});
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

void OnnxConverter::slice() {
  const std::size_t x = node_at(0);
  const Integers starts = file_.integers(constant_at(1));
  const Integers ends = file_.integers(constant_at(2));
  const Integers axes = node_->has_input(3) ? file_.integers(constant_at(3)) : Integers{};
  const Integers steps = node_->has_input(4) ? file_.integers(constant_at(4)) : Integers{};
  const ValueShape& shape = shape_of(x);
  const bool is_whole = ends.size() == 2 && ends[0] >= shape.height && ends[1] >= shape.width;
  const bool is_known = starts == Integers{0, 0} && is_whole && axes == Integers{2, 3} && steps.size() == 2 &&
                        steps[0] == steps[1] && steps[0] >= 1 && steps[0] <= OnnxNode::largest_number &&
                        !shape.is_row();
  if (!is_known) node_->refuse("only every n-th row and column of a whole map is possible");
  give(SlicedValue{x, steps[0]});
}

void OnnxConverter::pad() {
  const onnx::AttributeProto* const mode = node_->attribute("mode");
  const bool is_constant = mode == nullptr || mode->s() == "constant";
  if (!is_constant || bound_at(2, 0) != 0) node_->refuse("only padding by zeros is possible");
  if (node_->has_input(3)) node_->refuse("only pads of all axes are possible");
  const Integers pads = file_.integers(constant_at(1));
  if (pads == Integers(8, 0)) return give(input(0));
  if (pads.size() == 8 && pads == Integers{0, 0, pads[2], pads[2], 0, 0, pads[2], pads[2]} && pads[2] > 0) {
    give(PaddedValue{node_at(0), pads[2]});
    return;
  }
  const bool is_behind_channels = pads.size() == 8 && pads[5] >= 0 && pads[5] <= most_channels &&
                                  std::ranges::count(pads, 0) == (pads[5] == 0 ? 8 : 7);
  if (!is_behind_channels) {
    node_->refuse("only zeros around a map, or channels of zeros behind the last one, are possible");
  }
  const auto* const sliced = std::get_if<SlicedValue>(&input(0));
  const std::int64_t stride = sliced == nullptr ? 1 : sliced->stride;
  const std::size_t x = sliced == nullptr ? node_at(0) : sliced->node;
  give_node(op::Subsample{stride, shape_of(x).channels + pads[5]}, {x});
}

// ---- normalization at the input

void OnnxConverter::subtract() {
  if (as_constant(0) != nullptr) {
    const std::size_t x = node_at(1);
    give_node(op::Shift{constants_at(0, x)}, {added(op::Scale{{-1}}, {x}, "")});
    return;
  }
  if (!std::holds_alternative<ImageValue>(input(0))) return give_shifted(1, -1);
  normalize(ImageValue::State::raw, ImageValue::State::centred, network_.mean);
}

void OnnxConverter::divide() {
  if (as_constant(0) != nullptr) node_->refuse("only quotients by constants are possible");
  if (!std::holds_alternative<ImageValue>(input(0))) {
    if (divide_in_gelu()) return;
    const std::size_t x = node_at(0);
    std::vector<float> factors = constants_at(1, x);
    for (float& factor : factors) factor = 1 / factor;
    if (!std::ranges::all_of(factors, [](float factor) { return std::isfinite(factor); })) {
      node_->refuse("it divides by 0, or by a number near 0");
    }
    give_node(op::Scale{std::move(factors)}, {x});
    return;
  }
  normalize(ImageValue::State::centred, ImageValue::State::normalized, network_.deviation);
  if (std::ranges::any_of(network_.deviation, [](float deviation) { return deviation <= 0; })) {
    node_->refuse("a deviation is not positive");
  }
}

void OnnxConverter::normalize(ImageValue::State from, ImageValue::State to, std::vector<float>& values) {
  const auto* const image = std::get_if<ImageValue>(&input(0));
  if (image == nullptr || image->state != from || network_.graph.nodes().size() > 1) {
    node_->refuse("it is possible only as the normalization of the images: (x - mean) / deviation");
  }
  const onnx::TensorProto& tensor = constant_at(1);
  const std::int64_t channels = network_.graph.node(0).shape.channels;
  const bool is_one = std::ranges::all_of(tensor.dims(), [](std::int64_t dim) { return dim == 1; });
  const Integers by_channel = {channels, 1, 1};
  const Integers dims(tensor.dims().begin(), tensor.dims().end());
  if (!is_one && dims != by_channel && dims != Integers{1, channels, 1, 1}) {
    node_->refuse(fmt::format("'{}' has no value for each of {} channels", short_text(tensor.name()), channels));
  }
  values = file_.floats(tensor);
  if (is_one) values.resize(static_cast<std::size_t>(channels), values.front());
  give(ImageValue{to});
}

}  // namespace lockstep
