#include "network/fusion.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace lockstep {
namespace {

class Fusion {
 public:
  Fusion(const NetworkGraph& graph, bool norms_apply_gelu)
      : graph_(graph), norms_apply_gelu_(norms_apply_gelu), readers_(graph.reader_counts()) {}

  std::vector<LayerSpec> layers() {
    for (std::size_t node = 1; node < graph_.nodes().size(); ++node) {
      if (!join(node)) start(node);
    }
    std::ranges::sort(layers_, {}, &LayerSpec::output);
    find_first_readers();
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) find_norm_reader(layer);
    return std::move(layers_);
  }

 private:
  const op::Convolution* convolution(const LayerSpec& layer) const {
    return graph_.node(layer.main).as<op::Convolution>();
  }

  // The layer that ends with this node, if nothing but the next node reads it.
  LayerSpec* ending_with(std::size_t node) {
    const auto found = std::ranges::find(layers_, node, &LayerSpec::output);
    return found == layers_.end() || readers_[node] != 1 ? nullptr : &*found;
  }

  bool join(std::size_t index) {
    const GraphNode& node = graph_.node(index);
    LayerSpec* layer = nullptr;
    if (node.as<op::BatchNorm>() != nullptr) {
      layer = ending_with(node.inputs[0]);
      if (layer == nullptr || layer->output != layer->main || convolution(*layer) == nullptr) return false;
      layer->norm = index;
    } else if (node.as<op::Add>() != nullptr) {
      layer = layer_that_adds(node);
      if (layer == nullptr) return false;
      layer->inputs.push_back(node.inputs[0] == layer->output ? node.inputs[1] : node.inputs[0]);
      layer->adds = true;
    } else if (node.as<op::Relu>() != nullptr) {
      layer = ending_with(node.inputs[0]);
      if (layer == nullptr || layer->activation != Activation::none || !takes_activation(*layer)) return false;
      layer->activation = Activation::relu;
    } else if (norms_apply_gelu_ && node.as<op::Gelu>() != nullptr) {
      layer = ending_with(node.inputs[0]);
      if (layer == nullptr || layer->norm != layer->output) return false;
      layer->activation = Activation::gelu;
    } else {
      return false;
    }
    layer->output = index;
    return true;
  }

  // Of two layers that could add the other one's value, the later: its input is computed last.
  LayerSpec* layer_that_adds(const GraphNode& node) {
    LayerSpec* chosen = nullptr;
    for (const std::size_t input : node.inputs) {
      LayerSpec* const layer = ending_with(input);
      const bool ends_with_norm = layer != nullptr && layer->norm == layer->output;
      if (ends_with_norm && (chosen == nullptr || layer->main > chosen->main)) chosen = layer;
    }
    return chosen;
  }

  // The passes of norms and biases apply activations.
  bool takes_activation(const LayerSpec& layer) const {
    if (layer.norm) return true;
    if (const op::Convolution* const conv = convolution(layer)) return conv->has_bias;
    const auto* const linear = graph_.node(layer.main).as<op::Linear>();
    return linear != nullptr && linear->has_bias;
  }

  void start(std::size_t index) {
    const GraphNode& node = graph_.node(index);
    std::optional<std::size_t> norm;
    if (node.as<op::BatchNorm>() != nullptr) norm = index;
    layers_.push_back({.main = index, .norm = norm, .inputs = node.inputs, .output = index, .previous_norm = {}});
  }

  // The sums of the norm's gradient are fused into the convolution, and exclude a bias.
  void find_norm_reader(std::size_t index) {
    LayerSpec& layer = layers_[index];
    const op::Convolution* const conv = convolution(layer);
    if (!layer.norm || (conv != nullptr && conv->has_bias)) return;
    if (readers_[layer.output] == 0) return;
    LayerSpec* const reader = &layers_[first_reader_[layer.output]];
    if (convolution(*reader) == nullptr || reader->inputs[0] != layer.output) return;
    if (std::ranges::count(reader->inputs, layer.output) > 1) return;
    // A reader sees a pixel several times, which is too often for a GELU.
    const bool may_defer = readers_[layer.output] == 1 && !layer.adds && layer.activation != Activation::gelu;
    layer.norm_reader = may_defer ? NormReader::deferred : NormReader::gradient;
    reader->previous_norm = index;
  }

  void find_first_readers() {
    first_reader_.resize(graph_.nodes().size());
    for (std::size_t layer = layers_.size(); layer-- > 0;) {
      for (const std::size_t input : layers_[layer].inputs) first_reader_[input] = layer;
    }
  }

  const NetworkGraph& graph_;
  bool norms_apply_gelu_;
  std::vector<int> readers_;
  std::vector<std::size_t> first_reader_;  // layer, by node
  std::vector<LayerSpec> layers_;
};

}  // namespace

void require_images_for_convolutions(const NetworkGraph& graph) {
  for (const GraphNode& node : graph.nodes()) {
    const bool reads_images = std::ranges::count(node.inputs, std::size_t{0}) > 0;
    require(!reads_images || node.as<op::Convolution>() != nullptr, Failure::usage,
            "the {} '{}' reads the images, which only a Conv can.", operation_name(node.operation), node.name);
  }
}

std::vector<LayerSpec> fuse(const NetworkGraph& graph, bool norms_apply_gelu) {
  return Fusion(graph, norms_apply_gelu).layers();
}

}  // namespace lockstep
