// ONNX operators that compute each value by itself, normalization at the input included.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "network/onnx/onnx_converter.hpp"

namespace lockstep {
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
