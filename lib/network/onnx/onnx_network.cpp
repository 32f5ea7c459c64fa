#include "network/onnx/onnx_network.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "network/fusion.hpp"
#include "network/onnx/onnx_constants.hpp"
#include "network/onnx/onnx_file.hpp"
#include "network/onnx/onnx_node.hpp"
#include "network/onnx/onnx_parameters.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t most_channels = 1 << 24;
const std::array<float, 9> binomial = {1 / 16.0F, 2 / 16.0F, 1 / 16.0F, 2 / 16.0F, 4 / 16.0F,
                                       2 / 16.0F, 1 / 16.0F, 2 / 16.0F, 1 / 16.0F};

// A value of the ONNX graph that depends on the images.
struct ImageValue {  // the input, while it may still be normalized
  enum class State : std::uint8_t { raw, centred, normalized } state = State::raw;
};
struct NodeValue {
  std::size_t node;
  bool is_unflattened_row = false;  // ONNX sees it as [n, c, 1, 1], and it must be flattened
};
struct SlicedValue {  // every stride-th pixel of a node's map, which a Pad may follow
  std::size_t node;
  std::int64_t stride;
};
using KnownValue = std::variant<ImageValue, NodeValue, SlicedValue>;

// Without the full stop, for a longer sentence.
std::string words_of(const Error& error) {
  std::string words = error.what();
  if (words.ends_with('.')) words.pop_back();
  return words;
}

class Converter {
 public:
  Converter(const OnnxFile& file, std::optional<ValueShape> images)
      : file_(file),
        network_{
            .graph = NetworkGraph(input_shape(images)), .arrays = {}, .mean = {}, .deviation = {}, .foreign_name = {}},
        constants_(file),
        parameters_(file, network_.graph.node(0).name) {
    define(image_name_, ImageValue{});
  }

  OnnxNetwork convert() {
    for (const onnx::NodeProto& proto : file_.graph().node()) {
      const OnnxNode node(file_, proto);
      node_ = &node;
      if (!node.is_standard()) node.refuse(advice_for(node.kind()));
      if (constants_.compute(node)) continue;
      const auto found = converters().find(node.kind());
      if (found == converters().end()) node.refuse(advice_for(node.kind()));
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
    if (last == nullptr || last->is_unflattened_row || !nodes[last->node].shape.is_row()) {
      file_.unusable(fmt::format("its output '{}' is not a row of logits", short_text(output)));
    }
    require_read(last->node);
    require_runnable();
    if (network_.mean.size() != network_.deviation.size()) {
      file_.unusable("it subtracts a mean from the images, but divides by no deviation");
    }
    network_.arrays = parameters_.take();
    network_.foreign_name = parameters_.foreign_name();
    return std::move(network_);
  }

 private:
  using Convert = void (Converter::*)();

  static const std::map<std::string, Convert>& converters() {
    static const std::map<std::string, Convert> all = {{"Add", &Converter::add},
                                                       {"AveragePool", &Converter::average_pool},
                                                       {"BatchNormalization", &Converter::batch_norm},
                                                       {"Conv", &Converter::conv},
                                                       {"Div", &Converter::divide},
                                                       {"Flatten", &Converter::flatten},
                                                       {"Gemm", &Converter::gemm},
                                                       {"GlobalAveragePool", &Converter::global_average_pool},
                                                       {"Identity", &Converter::identity},
                                                       {"MaxPool", &Converter::max_pool},
                                                       {"Pad", &Converter::pad},
                                                       {"ReduceMean", &Converter::reduce_mean},
                                                       {"Relu", &Converter::relu},
                                                       {"Reshape", &Converter::reshape},
                                                       {"Slice", &Converter::slice},
                                                       {"Sub", &Converter::subtract}};
    return all;
  }

  static std::string advice_for(const std::string& kind) {
    if (kind == "Softmax" || kind == "LogSoftmax") return "the loss includes it. Export a model that returns logits";
    if (kind == "Dropout") return "Lockstep has no such operator. Replace nn.Dropout by nn.Identity";
    constexpr std::array<std::string_view, 5> of_shapes = {"Gather", "Shape", "Squeeze", "Transpose", "Unsqueeze"};
    if (std::ranges::count(of_shapes, kind) > 0) {
      return "shapes cannot be computed. Use torch.flatten(x, 1) before a linear layer, which needs a bias";
    }
    return "Lockstep has no such operator. It has Add, BatchNormalization, Conv, Flatten, Gemm, GlobalAveragePool, "
           "Identity, MaxPool, ReduceMean and Relu";
  }

  // All nodes but the output are.
  void require_read(std::size_t output) const {
    const std::vector<int> readers = network_.graph.reader_counts();
    for (std::size_t index = 0; index < readers.size(); ++index) {
      if (readers[index] == 0 && index != output) {
        file_.unusable(fmt::format("nothing reads the result of '{}'", network_.graph.node(index).name));
      }
    }
  }

  // Some layer runs each node. PyTorch's exporter merges norms into convolutions unless told not to.
  void require_runnable() const try {
    require_images_for_convolutions(network_.graph);
    fuse(network_.graph);
  } catch (const Error& error) {
    std::string words = words_of(error);
    const bool has_norms = std::ranges::any_of(
        network_.graph.nodes(), [](const GraphNode& node) { return node.as<op::BatchNorm>() != nullptr; });
    if (words.starts_with("the Relu") && !has_norms) {
      words +=
          ". If the exporter removed norms, export model.train() with optimize=False (dynamo=True) or with "
          "training=TrainingMode.PRESERVE and do_constant_folding=False";
    }
    file_.unusable(words);
  }

  // ---- values

  void define(const std::string& name, KnownValue value) {
    if (!values_.emplace(name, value).second) {
      file_.damaged(fmt::format("two values have the name '{}'", short_text(name)));
    }
  }
  void give(KnownValue value) { define(node_->output(), value); }
  void give_node(const Operation& operation, std::vector<std::size_t> inputs, const std::string& name = "") {
    give(NodeValue{added(operation, std::move(inputs), name)});
  }
  std::size_t added(const Operation& operation, std::vector<std::size_t> inputs, const std::string& name) try {
    return network_.graph.add(name, operation, std::move(inputs));
  } catch (const Error& error) {
    node_->refuse(words_of(error));
  }

  const KnownValue& input(int index) const {
    const auto found = values_.find(node_->input(index));
    if (found == values_.end()) {
      if (as_constant(index) != nullptr) node_->refuse(fmt::format("its input {} is an array", index));
      node_->damaged(fmt::format("reads '{}', which no node before it computes", short_text(node_->input(index))));
    }
    return found->second;
  }
  const onnx::TensorProto* as_constant(int index) const {
    return node_->has_input(index) ? constants_.find(node_->input(index)) : nullptr;
  }
  const onnx::TensorProto& constant_at(int index) const {
    const onnx::TensorProto* const tensor = constants_.find(node_->input(index));
    if (tensor == nullptr) node_->refuse(fmt::format("its input {} is not an array in the file", index));
    return *tensor;
  }
  // The node that computes an input which is no constant.
  std::size_t node_at(int index) {
    const KnownValue& value = input(index);
    if (const auto* const sliced = std::get_if<SlicedValue>(&value)) {
      const std::int64_t channels = network_.graph.node(sliced->node).shape.channels;
      const NodeValue made{added(op::Subsample{sliced->stride, channels}, {sliced->node}, "")};
      values_.at(node_->input(index)) = made;  // for its other readers
      return made.node;
    }
    if (std::holds_alternative<ImageValue>(value)) return 0;
    const auto* const node = &std::get<NodeValue>(value);
    if (node->is_unflattened_row) {
      node_->refuse("it reads a pooled map that is not flattened. Flatten the mean of each channel");
    }
    return node->node;
  }

  std::string layer_name(const onnx::TensorProto& weight) {
    return parameters_.layer_name(*node_, weight, network_.graph.nodes().size());
  }
  NamedArray& keep(const std::string& name, const onnx::TensorProto& tensor, const Integers& dims) {
    return parameters_.keep(*node_, name, tensor, dims);
  }

  // ---- operators

  void identity() { give(input(0)); }

  void conv() {
    const onnx::TensorProto& weight = constant_at(1);
    if (weight.dims_size() != 4 || weight.dims(2) != weight.dims(3)) node_->refuse("only square kernels are possible");
    const std::size_t x = node_at(0);
    const ValueShape& shape = network_.graph.node(x).shape;
    const auto [stride, padding] = node_->window();
    const std::int64_t kernel = weight.dims(2);
    if (const Integers stated = node_->integers("kernel_shape", {kernel, kernel}); stated != Integers{kernel, kernel}) {
      node_->damaged("has a kernel_shape that its weight does not have");
    }
    if (is_blur(weight, shape, stride, padding)) {
      give_node(op::Blur{stride}, {x});
      return;
    }
    node_->require_integer("group", 1, 1);
    const Conv2d conv{.in_channels = weight.dims(1),
                      .out_channels = weight.dims(0),
                      .kernel = kernel,
                      .stride = stride,
                      .padding = padding};
    if (padding >= kernel) {
      node_->refuse(fmt::format("pads of {} are not possible with a kernel of {}", padding, kernel));
    }
    const std::string name = layer_name(weight);
    const bool has_bias = node_->has_input(2) && !constants_.is_computed_zero(node_->input(2));
    give_node(op::Convolution{.conv = conv, .has_bias = has_bias}, {x}, name);
    keep(name + ".weight", weight, {conv.out_channels, conv.in_channels, kernel, kernel});
    if (has_bias) keep(name + ".bias", constant_at(2), {conv.out_channels});
  }

  bool is_blur(const onnx::TensorProto& weight, const ValueShape& shape, std::int64_t stride,
               std::int64_t padding) const {
    const bool is_by_channel = node_->integer("group", 1) == shape.channels && shape.channels > 1;
    if (!is_by_channel || node_->has_input(2) || padding != 1 || stride > 2) return false;
    if (!std::ranges::equal(weight.dims(), Integers{shape.channels, 1, 3, 3})) return false;
    const std::vector<float> values = file_.floats(weight);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != binomial[i % binomial.size()]) return false;
    }
    return true;
  }

  void batch_norm() {
    const std::size_t x = node_at(0);
    const std::int64_t channels = network_.graph.node(x).shape.channels;
    node_->require_number("epsilon", NormWeights{}.epsilon, 1e-5F);
    const std::string name = layer_name(constant_at(1));
    give_node(op::BatchNorm{}, {x}, name);
    const std::array<const char*, 4> endings = {".weight", ".bias", ".running_mean", ".running_var"};
    const NamedArray* last = nullptr;
    for (int i = 0; i < std::ssize(endings); ++i) {
      last = &keep(name + endings[static_cast<std::size_t>(i)], constant_at(i + 1), {channels});
    }
    if (std::ranges::any_of(last->values, [](float variance) { return variance < 0; })) {
      node_->refuse("a running variance is negative");
    }
  }

  void relu() { give_node(op::Relu{}, {node_at(0)}); }

  void add() {
    if (as_constant(0) != nullptr || as_constant(1) != nullptr) {
      node_->refuse("only sums of two computed values are possible");
    }
    give_node(op::Add{}, {node_at(0), node_at(1)});
  }

  void max_pool() {
    const auto [stride, padding] = node_->window();
    node_->require_integer("ceil_mode", 0, 0);
    node_->require_integer("storage_order", 0, 0);
    const std::int64_t kernel = node_->common("kernel_shape", 2, 1, 0);
    constexpr std::int64_t largest_window = 15;  // places in a window are bytes
    if (padding >= kernel || kernel > largest_window) {
      node_->refuse(fmt::format("a window of {} with pads of {} is not possible", kernel, padding));
    }
    give_node(op::MaxPool{{.kernel = kernel, .stride = stride, .padding = padding}}, {node_at(0)});
  }

  void global_average_pool() { pool_mean(true); }

  void average_pool() {
    const ValueShape& shape = network_.graph.node(node_at(0)).shape;
    const bool is_whole = node_->integers("kernel_shape", {}) == Integers{shape.height, shape.width};
    if (!is_whole || node_->window().padding != 0) {
      node_->refuse("only the mean of a whole map is possible. Use nn.AdaptiveAvgPool2d(1)");
    }
    pool_mean(true);
  }

  void reduce_mean() {
    const Integers axes = node_->has_input(1) ? file_.integers(constant_at(1)) : node_->integers("axes", {});
    const bool is_over_space =
        axes == Integers{2, 3} || axes == Integers{-2, -1} || axes == Integers{-1, -2} || axes == Integers{3, 2};
    if (!is_over_space) {
      node_->refuse(fmt::format("axes are {}. Only the mean over rows and columns is possible", short_text(axes)));
    }
    pool_mean(node_->integer("keepdims", 1) != 0);
  }

  void pool_mean(bool keeps_dims) {
    give_node(op::GlobalMeanPool{}, {node_at(0)});
    std::get<NodeValue>(values_.at(node_->output())).is_unflattened_row = keeps_dims;
  }

  void flatten() {
    node_->require_integer("axis", 1, 1);
    give_flat();
  }

  void reshape() {
    const Integers shape = file_.integers(constant_at(1));
    // With images of another size than the file's, there are other features, which a Gemm then names.
    if (shape.size() != 2) {
      node_->refuse(fmt::format("the shape {} is not possible. Use torch.flatten(x, 1)", short_text(shape)));
    }
    give_flat();
  }

  void give_flat() {
    const auto* const value = std::get_if<NodeValue>(&input(0));
    if (value != nullptr && network_.graph.node(value->node).shape.is_row()) {
      give(NodeValue{value->node});
    } else {
      give_node(op::Flatten{}, {node_at(0)});
    }
  }

  void gemm() {
    const std::size_t x = node_at(0);
    node_->require_number("alpha", 1, 1);
    node_->require_number("beta", 1, 1);
    node_->require_integer("transA", 0, 0);
    const onnx::TensorProto& weight = constant_at(1);
    if (weight.dims_size() != 2) node_->refuse("its weight is not a matrix");
    const bool is_transposed = node_->integer("transB", 0) != 0;
    const std::int64_t out = weight.dims(is_transposed ? 0 : 1);
    const std::int64_t in = weight.dims(is_transposed ? 1 : 0);
    if (!node_->has_input(2)) node_->refuse("it has no bias. Export nn.Linear with bias=True");
    const std::string name = layer_name(weight);
    give_node(op::Linear{in, out}, {x}, name);
    NamedArray& kept = keep(name + ".weight", weight, {weight.dims(0), weight.dims(1)});
    if (!is_transposed) transpose(kept);
    keep(name + ".bias", constant_at(2), {out});
  }

  static void transpose(NamedArray& matrix) {
    const auto rows = static_cast<std::size_t>(matrix.dims[0]);
    const auto columns = static_cast<std::size_t>(matrix.dims[1]);
    std::vector<float> turned(matrix.values.size());
    for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = matrix.values[i % rows * columns + i / rows];
    matrix.values = std::move(turned);
    std::swap(matrix.dims[0], matrix.dims[1]);
  }

  void slice() {
    const std::size_t x = node_at(0);
    const Integers starts = file_.integers(constant_at(1));
    const Integers ends = file_.integers(constant_at(2));
    const Integers axes = node_->has_input(3) ? file_.integers(constant_at(3)) : Integers{};
    const Integers steps = node_->has_input(4) ? file_.integers(constant_at(4)) : Integers{};
    const ValueShape& shape = network_.graph.node(x).shape;
    const bool is_whole = ends.size() == 2 && ends[0] >= shape.height && ends[1] >= shape.width;
    const bool is_known = starts == Integers{0, 0} && is_whole && axes == Integers{2, 3} && steps.size() == 2 &&
                          steps[0] == steps[1] && steps[0] >= 1 && steps[0] <= OnnxNode::largest_number &&
                          !shape.is_row();
    if (!is_known) node_->refuse("only every n-th row and column of a whole map is possible");
    give(SlicedValue{x, steps[0]});
  }

  void pad() {
    const onnx::AttributeProto* const mode = node_->attribute("mode");
    const Integers pads = file_.integers(constant_at(1));
    const bool is_of_zeros = (mode == nullptr || mode->s() == "constant") && !node_->has_input(2);
    const bool is_behind_channels = pads.size() == 8 && pads[5] >= 0 && pads[5] <= most_channels &&
                                    std::ranges::count(pads, 0) == (pads[5] == 0 ? 8 : 7);
    if (!is_of_zeros || !is_behind_channels) node_->refuse("only channels of zeros behind the last one are possible");
    const auto* const sliced = std::get_if<SlicedValue>(&input(0));
    const std::int64_t stride = sliced == nullptr ? 1 : sliced->stride;
    const std::size_t x = sliced == nullptr ? node_at(0) : sliced->node;
    give_node(op::Subsample{stride, network_.graph.node(x).shape.channels + pads[5]}, {x});
  }

  // ---- normalization at the input

  void subtract() { normalize(ImageValue::State::raw, ImageValue::State::centred, network_.mean); }
  void divide() {
    normalize(ImageValue::State::centred, ImageValue::State::normalized, network_.deviation);
    if (std::ranges::any_of(network_.deviation, [](float deviation) { return deviation <= 0; })) {
      node_->refuse("a deviation is not positive");
    }
  }

  void normalize(ImageValue::State from, ImageValue::State to, std::vector<float>& values) {
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

  // ---- the images

  ValueShape input_shape(std::optional<ValueShape> wanted) {
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

  const OnnxFile& file_;
  std::string image_name_;
  OnnxNetwork network_;
  std::map<std::string, KnownValue> values_;
  OnnxConstants constants_;
  OnnxParameters parameters_;
  const OnnxNode* node_ = nullptr;  // the one that is converted
};

}  // namespace

OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::optional<ValueShape> images) {
  const OnnxFile file(path);
  return Converter(file, images).convert();
}

std::string foreign_names_warning(const std::string& path, const OnnxNetwork& network) {
  return fmt::format(
      "'{}' has a parameter '{}', which is no name of PyTorch's: if batch norms were merged into convolutions, export "
      "model.train() with optimize=False (dynamo=True), or with training=TrainingMode.PRESERVE and "
      "do_constant_folding=False.",
      short_text(path), short_text(network.foreign_name));
}

bool is_onnx_path(const std::string& model) { return model.ends_with(".onnx"); }

}  // namespace lockstep
