#include "network/onnx/onnx_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep {
namespace {

// "Relu_5", as NetworkGraph::add() names nodes.
bool is_generated(const std::string& name) {
  const std::array<Operation, 18> unnamed = {op::Relu{},        op::LeakyRelu{}, op::Clip{},      op::Sigmoid{},
                                             op::Tanh{},        op::Gelu{},      op::Scale{},     op::Shift{},
                                             op::Dropout{},     op::Add{},       op::Concat{},    op::MaxPool{},
                                             op::AveragePool{}, op::Blur{},      op::Subsample{}, op::GlobalMeanPool{},
                                             op::Flatten{},     op::Unflatten{}};
  const std::size_t kind = name.find('_');
  return kind != std::string::npos && kind + 1 < name.size() &&
         name.find_first_not_of("0123456789", kind + 1) == std::string::npos &&
         std::ranges::count(unnamed, name.substr(0, kind), operation_name) > 0;
}

}  // namespace

std::string OnnxParameters::layer_name(const OnnxNode& node, const onnx::TensorProto& weight, std::size_t index) {
  require_unread(node, weight);
  constexpr std::string_view ending = ".weight";
  std::string name;
  if (weight.name().ends_with(ending)) name = weight.name().substr(0, weight.name().size() - ending.size());
  if (name.empty() || name.find('/') != std::string::npos || short_text(name) != name) {
    name = fmt::format("layer{}", index);
  }
  if (is_generated(name)) {
    node.refuse(fmt::format("nodes without parameters have names like '{}'. Name the module otherwise", name));
  }
  if (!layer_names_.insert(name).second) node.refuse(fmt::format("another node has the name '{}'", name));
  return name;
}

void OnnxParameters::require_unread(const OnnxNode& node, const onnx::TensorProto& tensor) const {
  if (kept_.contains(&tensor)) {
    node.refuse(fmt::format(
        "'{}' is read twice. Export model.train() with optimize=False (dynamo=True) or with "
        "training=TrainingMode.PRESERVE and do_constant_folding=False, and give each layer weights of its own",
        short_text(tensor.name())));
  }
}

NamedArray& OnnxParameters::keep(const OnnxNode& node, const std::string& name, const onnx::TensorProto& tensor,
                                 const Integers& dims) {
  if (!std::ranges::equal(tensor.dims(), dims)) {
    node.refuse(fmt::format("'{}' has the shape {}, not {}", short_text(tensor.name()),
                            short_text(Integers(tensor.dims().begin(), tensor.dims().end())), short_text(dims)));
  }
  require_unread(node, tensor);
  kept_.insert(&tensor);
  if (tensor.name() != name && foreign_name_.empty()) foreign_name_ = tensor.name();
  return arrays_.emplace_back(NamedArray{name, dims, file_.floats(tensor)});
}

}  // namespace lockstep
