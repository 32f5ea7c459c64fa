#include "nn/fused_network.hpp"

#include <utility>

#include "nn/conv_norm_act.hpp"
#include "nn/convolution.hpp"
#include "nn/flatten.hpp"
#include "nn/linear.hpp"
#include "nn/pooling.hpp"

namespace lockstep {
namespace {

// Makes the layer of a spec, by the operation of its main node.
class MakeLayer {
 public:
  MakeLayer(const NetworkGraph& graph, const LayerSpec& spec, const LayerContext& context)
      : graph_(graph), spec_(spec), context_(context), name_(graph.node(spec.main).name) {}

  std::unique_ptr<Layer> operator()(const op::Convolution& one) const {
    if (!spec_.norm) return std::make_unique<Convolution>(context_, name_, one, spec_.activation);
    const GraphNode& norm = graph_.node(*spec_.norm);
    return std::make_unique<ConvNormAct>(context_, name_, one, norm.name, *norm.as<op::BatchNorm>(), spec_.activation,
                                         spec_.norm_reader);
  }
  std::unique_ptr<Layer> operator()(const op::Linear& one) const {
    return std::make_unique<Linear>(context_, name_, one.in, one.out, spec_.activation);
  }
  std::unique_ptr<Layer> operator()(const op::MaxPool& one) const {
    return std::make_unique<MaxPool>(context_, one.pool);
  }
  std::unique_ptr<Layer> operator()(const op::Blur& one) const { return std::make_unique<Blur>(context_, one.stride); }
  std::unique_ptr<Layer> operator()(const op::Subsample& one) const {
    return std::make_unique<Subsample>(context_, one.stride, one.out_channels);
  }
  std::unique_ptr<Layer> operator()(const op::GlobalMeanPool&) const {
    return std::make_unique<GlobalMeanPool>(context_);
  }
  std::unique_ptr<Layer> operator()(const op::Flatten&) const { return std::make_unique<Flatten>(context_); }
  template <typename Kind>  // never the main node of a layer: see fuse()
  std::unique_ptr<Layer> operator()(const Kind&) const {
    return nullptr;
  }

 private:
  const NetworkGraph& graph_;
  const LayerSpec& spec_;
  const LayerContext& context_;
  const std::string& name_;
};

}  // namespace

FusedNetwork::FusedNetwork(const NetworkGraph& graph, const LayerContext& context)
    : device_(context.device),
      graph_(graph),
      supported_(graph.node(0).shape),
      specs_(fuse(graph)),
      last_reader_(graph.nodes().size()) {
  for (const LayerSpec& spec : specs_) {
    for (const std::size_t input : spec.inputs) last_reader_[input] = layers_.size();
    layers_.push_back(std::visit(MakeLayer(graph_, spec, context), graph_.node(spec.main).operation));
  }
}

void FusedNetwork::require_supported(const Shape& input) {
  const ValueShape size = sample_shape(input);
  if (size == supported_) return;
  graph_.for_input(size);
  supported_ = size;
}

void FusedNetwork::free_values_read_last_by(std::size_t layer) {
  for (const std::size_t input : specs_[layer].inputs) {
    if (last_reader_[input] == layer) values_[input] = {};
  }
}

Tensor FusedNetwork::forward(const Tensor& images, Mode mode) {
  require_supported(images.shape());
  values_.assign(graph_.nodes().size(), {});
  values_.front() = {images};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    x_.clear();
    for (const std::size_t input : specs_[layer].inputs) x_.push_back(values_[input]);
    values_[specs_[layer].output] = layers_[layer]->forward(x_, mode);
    x_.clear();
    free_values_read_last_by(layer);
  }
  return std::exchange(values_.back(), {}).x;
}

// A value's gradient is added up in the order in which its readers run in backward.
void FusedNetwork::add_gradients(const LayerSpec& spec) {
  for (std::size_t index = dx_.size(); index-- > 0;) {
    const Tensor& own = dx_[index].result;
    Tensor& sum = gradients_[spec.inputs[index]];
    if (!sum) {
      sum = own;
    } else if (own && own.data() != sum.data()) {
      device_.ops().add(own, sum);
    }
  }
}

Tensor FusedNetwork::backward(const Tensor& d_logits, GradientSink& sink) {
  gradients_.assign(graph_.nodes().size(), {});
  gradients_.back() = d_logits;
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    const LayerSpec& spec = specs_[layer];
    dx_.clear();
    for (const std::size_t input : spec.inputs) dx_.push_back({.sum = gradients_[input]});
    if (spec.previous_norm) dx_[0].norm = layers_[*spec.previous_norm]->norm_for_reader(sink.accumulate());
    const Tensor dy = std::exchange(gradients_[spec.output], {});
    layers_[layer]->backward(dy, dx_, sink);
    add_gradients(spec);
    dx_.clear();
  }
  return std::exchange(gradients_.front(), {});
}

}  // namespace lockstep
