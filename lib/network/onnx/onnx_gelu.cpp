// GELU: an operator from operator set 20 on. For older ones, PyTorch writes nn.GELU() as
//   x / sqrt(2), Erf, + 1, * x, * 0.5
// Whatever begins so must end so, except that x / sqrt(2) alone is a product like any other.
#include <algorithm>
#include <numbers>

#include "network/onnx/onnx_converter.hpp"

namespace lockstep {

void OnnxConverter::gelu() {
  const onnx::AttributeProto* const approximate = node_->attribute("approximate");
  if (approximate != nullptr && approximate->s() != "none") {
    node_->refuse("it is an approximation. Use nn.GELU() without approximate");
  }
  give_node(op::Gelu{}, {node_at(0)});
}

const OnnxConverter::GeluPart* OnnxConverter::gelu_part(int index, GeluPart::Step step) const {
  const auto found = values_.find(node_->input(index));
  const GeluPart* const part = found == values_.end() ? nullptr : std::get_if<GeluPart>(&found->second);
  return part != nullptr && part->step == step ? part : nullptr;
}

bool OnnxConverter::is_number(int index, float number) const {
  const onnx::TensorProto* const tensor = as_constant(index);
  if (tensor == nullptr || tensor->data_type() != onnx::TensorProto::FLOAT) return false;
  const bool is_one = std::ranges::all_of(tensor->dims(), [](std::int64_t dim) { return dim == 1; });
  return is_one && file_.floats(*tensor).front() == number;
}

bool OnnxConverter::divide_in_gelu() {
  if (!is_number(1, std::numbers::sqrt2_v<float>)) return false;
  give(GeluPart{GeluPart::Step::quotient, node_at(0)});
  return true;
}

void OnnxConverter::erf() {
  const GeluPart* const quotient = gelu_part(0, GeluPart::Step::quotient);
  if (quotient == nullptr) node_->refuse("it is possible only as PyTorch writes it for nn.GELU()");
  give(GeluPart{GeluPart::Step::erf, quotient->node});
}

bool OnnxConverter::add_in_gelu() {
  for (const int index : {0, 1}) {
    const GeluPart* const erf = gelu_part(index, GeluPart::Step::erf);
    if (erf == nullptr || !is_number(1 - index, 1)) continue;
    give(GeluPart{GeluPart::Step::factor, erf->node});
    return true;
  }
  return false;
}

bool OnnxConverter::multiply_in_gelu() {
  for (const int index : {0, 1}) {
    const GeluPart* const factor = gelu_part(index, GeluPart::Step::factor);
    if (factor != nullptr && as_constant(1 - index) == nullptr && node_at(1 - index) == factor->node) {
      give(GeluPart{GeluPart::Step::product, factor->node});
      return true;
    }
    const GeluPart* const product = gelu_part(index, GeluPart::Step::product);
    if (product != nullptr && is_number(1 - index, 0.5F)) {
      give_node(op::Gelu{}, {product->node});
      return true;
    }
  }
  return false;
}

// The value of a part for another reader.
std::size_t OnnxConverter::node_of(const GeluPart& part) {
  if (part.step != GeluPart::Step::quotient) {
    node_->refuse("it reads a part of a GELU, which is possible only as PyTorch writes nn.GELU()");
  }
  return added(op::Scale{{1 / std::numbers::sqrt2_v<float>}}, {part.node}, "");
}

}  // namespace lockstep
