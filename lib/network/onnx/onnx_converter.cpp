#include "network/onnx/onnx_converter.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/error.hpp"
#include "network/fusion.hpp"

namespace lockstep {

namespace {

// Without the full stop, for a longer sentence.
std::string words_of(const Error& error) {
  std::string words = error.what();
  if (words.ends_with('.')) words.pop_back();
  return words;
}

}  // namespace

OnnxConverter::OnnxConverter(const OnnxFile& file, std::optional<ValueShape> images)
    : file_(file),
      network_{.graph = NetworkGraph(input_shape(images)), .arrays = {}, .mean = {}, .deviation = {}, .warnings = {}},
      constants_(file),
      parameters_(file, network_.graph.node(0).name) {
  define(image_name_, ImageValue{});
}

OnnxNetwork OnnxConverter::convert() {
  for (const onnx::NodeProto& proto : file_.graph().node()) {
    const OnnxNode node(file_, proto);
    node_ = &node;
    if (!node.is_standard()) refuse_operator();
    if (constants_.compute(node)) continue;
    if (computes_array()) {
      set_array_aside();
      continue;
    }
    const auto found = operators().find(node.kind());
    if (found == operators().end()) refuse_operator();
    (this->*found->second)();
  }
  node_ = nullptr;
  if (file_.graph().output_size() != 1) {
    file_.unusable(
        fmt::format("it has {} outputs. Export a model that returns only the logits", file_.graph().output_size()));
  }
  const std::string& output = file_.graph().output(0).name();
  const auto found = values_.find(output);
  const NodeValue* const last = found == values_.end() ? nullptr : std::get_if<NodeValue>(&found->second);
  const std::vector<GraphNode>& nodes = network_.graph.nodes();
  if (last == nullptr || !nodes[last->node].shape.is_row()) {
    file_.unusable(fmt::format("its output '{}' is not a row of logits", short_text(output)));
  }
  require_read(last->node);
  try {
    require_images_for_convolutions(network_.graph);
  } catch (const Error& error) {
    file_.unusable(words_of(error));
  }
  if (network_.mean.size() != network_.deviation.size()) {
    file_.unusable("it subtracts a mean from the images, but divides by no deviation");
  }
  network_.arrays = parameters_.take();
  add_warnings();
  return std::move(network_);
}

void OnnxConverter::add_warnings() {
  constexpr std::string_view keep_norms =
      "export model.train() with optimize=False (dynamo=True), or with training=TrainingMode.PRESERVE and "
      "do_constant_folding=False";
  const auto warn = [&](const std::string& what) {
    network_.warnings.push_back(fmt::format("network '{}': {}.", short_text(file_.name()), what));
  };
  if (file_.has_merged_norms()) {
    warn(fmt::format("the exporter has merged batch norms into other layers. To train them, {}", keep_norms));
  } else if (!parameters_.foreign_name().empty()) {
    warn(fmt::format("parameter '{}' has no name of PyTorch's. If batch norms were merged into convolutions, {}",
                     short_text(parameters_.foreign_name()), keep_norms));
  }
  if (!constant_name_.empty()) {
    warn(fmt::format("'{}' is multiplied or added, and is not trained: it remains as it is",
                     short_text(constant_name_)));
  }
  if (!momentum_.empty()) warn(momentum_);
}

// From other arrays alone. Transpose is not among them: it may turn the weights of a linear layer.
bool OnnxConverter::computes_array() const {
  if (node_->kind() == "Transpose" || node_->input_count() == 0) return false;
  for (int i = 0; i < node_->input_count(); ++i) {
    if (node_->has_input(i) && !constants_.is_array(node_->input(i))) return false;
  }
  return true;
}

void OnnxConverter::set_array_aside() {
  try {
    refuse_operator();
  } catch (const Error& error) {
    constants_.set_aside(*node_, error);
  }
}

ValueShape OnnxConverter::input_shape(std::optional<ValueShape> wanted) {
  const onnx::ValueInfoProto* images = nullptr;
  std::set<std::string> arrays;  // older files list them as inputs, too
  for (const onnx::TensorProto& tensor : file_.graph().initializer()) arrays.insert(tensor.name());
  for (const onnx::ValueInfoProto& one : file_.graph().input()) {
    if (arrays.contains(one.name())) continue;
    if (images != nullptr) file_.unusable("it has several inputs. Only images are possible");
    images = &one;
  }
  if (images == nullptr) file_.damaged("it has no input");
  image_name_ = images->name();
  const onnx::TensorShapeProto& shape = images->type().tensor_type().shape();
  if (shape.dim_size() != 4) file_.unusable("its input is not [batch, channels, height, width]");
  const std::int64_t channels = shape.dim(1).dim_value();
  if (channels < 1 || channels > 3) {
    file_.unusable(fmt::format("its images have {} channels, not 1 to 3", channels));
  }
  const auto size = [&](int dim) {
    const std::int64_t stated = shape.dim(dim).dim_value();
    const std::int64_t pixels = !wanted ? stated : dim == 2 ? wanted->height : wanted->width;
    if (pixels == 0) file_.unusable("it leaves the size of the images open. Add --image-size");
    if (pixels < 1 || pixels > OnnxNode::largest_number) {
      file_.damaged(fmt::format("its images have sides of {} pixels", pixels));
    }
    return pixels;
  };
  return {size(2), size(3), channels};
}

// All nodes but the output are.
void OnnxConverter::require_read(std::size_t output) const {
  const std::vector<int> readers = network_.graph.reader_counts();
  for (std::size_t index = 0; index < readers.size(); ++index) {
    if (readers[index] == 0 && index != output) {
      file_.unusable(fmt::format("nothing reads the result of '{}'", network_.graph.node(index).name));
    }
  }
}

// ---- values

void OnnxConverter::define(const std::string& name, KnownValue value) {
  if (constants_.find(name) != nullptr || transposed_.contains(name) || !values_.emplace(name, value).second) {
    file_.damaged(fmt::format("two values have the name '{}'", short_text(name)));
  }
}

void OnnxConverter::give_node(const Operation& operation, std::vector<std::size_t> inputs, const std::string& name) {
  give(NodeValue{added(operation, std::move(inputs), name)});
}

std::size_t OnnxConverter::added(const Operation& operation, std::vector<std::size_t> inputs,
                                 const std::string& name) try {
  return network_.graph.add(name, operation, std::move(inputs));
} catch (const Error& error) {
  node_->refuse(words_of(error));
}

const OnnxConverter::KnownValue& OnnxConverter::input(int index) const {
  const auto found = values_.find(node_->input(index));
  if (found == values_.end()) {
    if (as_constant(index) != nullptr) node_->refuse(fmt::format("its input {} is an array", index));
    node_->damaged(fmt::format("reads '{}', which no node before it computes", short_text(node_->input(index))));
  }
  return found->second;
}

const onnx::TensorProto* OnnxConverter::as_constant(int index) const {
  if (!node_->has_input(index)) return nullptr;
  constants_.require_computed(node_->input(index));
  return constants_.find(node_->input(index));
}

const onnx::TensorProto& OnnxConverter::constant_at(int index) const {
  constants_.require_computed(node_->input(index));
  const onnx::TensorProto* const tensor = constants_.find(node_->input(index));
  if (tensor == nullptr) node_->refuse(fmt::format("its input {} is not an array in the file", index));
  return *tensor;
}

std::size_t OnnxConverter::node_at(int index) {
  const KnownValue& value = input(index);
  if (const auto* const node = std::get_if<NodeValue>(&value)) return node->node;
  if (std::holds_alternative<ImageValue>(value)) return 0;
  if (std::holds_alternative<PaddedValue>(value)) {
    node_->refuse("it reads a map with zeros around it (Pad), which only an AveragePool may. Use its own padding");
  }
  NodeValue made{};
  if (const auto* const mean = std::get_if<MeanValue>(&value)) {
    made.node = added(mean_window(*mean), {mean->node}, "");
  } else if (const auto* const part = std::get_if<GeluPart>(&value)) {
    made.node = node_of(*part);
  } else {
    const auto& sliced = std::get<SlicedValue>(value);
    made.node = added(op::Subsample{sliced.stride, shape_of(sliced.node).channels}, {sliced.node}, "");
  }
  values_.at(node_->input(index)) = made;  // for its other readers
  return made.node;
}

op::AveragePool OnnxConverter::mean_window(const MeanValue& mean) const {
  const ValueShape& shape = shape_of(mean.node);
  if (shape.height != shape.width || shape.height > Pool2d::largest_kernel) {
    node_->refuse(
        fmt::format("it reads the mean of {} x {} pixels, which is not flattened. Use torch.flatten(x, 1), or a square "
                    "of up to {} x {} pixels",
                    shape.height, shape.width, Pool2d::largest_kernel, Pool2d::largest_kernel));
  }
  return {{.kernel = shape.height, .stride = 1}};
}

std::string OnnxConverter::layer_name(const onnx::TensorProto& weight) {
  return parameters_.layer_name(*node_, weight, network_.graph.nodes().size());
}
NamedArray& OnnxConverter::keep(const std::string& name, const onnx::TensorProto& tensor, const Integers& dims) {
  return parameters_.keep(*node_, name, tensor, dims);
}

}  // namespace lockstep
