#include "nn/fused_network.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "device/dropout.hpp"
#include "device/flat/flat_passes.hpp"
#include "device/profiler_range.hpp"
#include "nn/concat.hpp"
#include "nn/conv_norm_act.hpp"
#include "nn/convolution.hpp"
#include "nn/elementwise.hpp"
#include "nn/flatten.hpp"
#include "nn/linear.hpp"
#include "nn/pooling.hpp"

namespace lockstep {
namespace {

// Makes the layer of a spec, by the operation of its main node.
class MakeLayer {
 public:
  MakeLayer(const NetworkGraph& graph, const LayerSpec& spec, const LayerContext& context, const Tensor& dropout_key)
      : graph_(graph), spec_(spec), context_(context), dropout_key_(dropout_key), name_(graph.node(spec.main).name) {}

  std::unique_ptr<Layer> operator()(const op::Convolution& one) const {
    if (!spec_.norm) return std::make_unique<Convolution>(context_, name_, one, spec_.activation);
    return norm_after(std::make_unique<Convolution>(context_, name_, one));
  }
  std::unique_ptr<Layer> operator()(const op::BatchNorm&) const { return norm_after(nullptr); }
  std::unique_ptr<Layer> operator()(const op::Linear& one) const {
    return std::make_unique<Linear>(context_, name_, one, spec_.activation);
  }
  std::unique_ptr<Layer> operator()(const op::Relu&) const { return activate({.kind = Curve::Kind::relu}); }
  std::unique_ptr<Layer> operator()(const op::LeakyRelu& one) const {
    return activate({.kind = Curve::Kind::leaky_relu, .slope = one.slope});
  }
  std::unique_ptr<Layer> operator()(const op::Clip& one) const {
    return activate({.kind = Curve::Kind::clip, .low = one.low, .high = one.high});
  }
  std::unique_ptr<Layer> operator()(const op::Sigmoid&) const { return activate({.kind = Curve::Kind::sigmoid}); }
  std::unique_ptr<Layer> operator()(const op::Tanh&) const { return activate({.kind = Curve::Kind::tanh}); }
  std::unique_ptr<Layer> operator()(const op::Gelu&) const { return activate({.kind = Curve::Kind::gelu}); }
  std::unique_ptr<Layer> operator()(const op::Scale& one) const {
    if (one.factors.size() == 1) return activate({.kind = Curve::Kind::linear, .slope = one.factors.front()});
    return std::make_unique<ChannelConstants>(context_, one.factors, std::vector<float>(one.factors.size(), 0.0F));
  }
  std::unique_ptr<Layer> operator()(const op::Shift& one) const {
    if (one.terms.size() == 1) {
      return activate({.kind = Curve::Kind::linear, .slope = 1, .shift = one.terms.front()});
    }
    return std::make_unique<ChannelConstants>(context_, std::vector<float>(one.terms.size(), 1.0F), one.terms);
  }
  std::unique_ptr<Layer> operator()(const op::Dropout& one) const {
    return std::make_unique<Drop>(context_, Dropout{one.ratio, static_cast<std::uint32_t>(spec_.main), dropout_key_});
  }
  std::unique_ptr<Layer> operator()(const op::Add&) const { return std::make_unique<Add>(context_); }
  std::unique_ptr<Layer> operator()(const op::Concat&) const { return std::make_unique<Concat>(context_); }
  std::unique_ptr<Layer> operator()(const op::MaxPool& one) const {
    return std::make_unique<MaxPool>(context_, one.pool);
  }
  std::unique_ptr<Layer> operator()(const op::AveragePool& one) const {
    return std::make_unique<AveragePool>(context_, one.pool, one.counts_padding);
  }
  std::unique_ptr<Layer> operator()(const op::Blur& one) const { return std::make_unique<Blur>(context_, one.stride); }
  std::unique_ptr<Layer> operator()(const op::Subsample& one) const {
    return std::make_unique<Subsample>(context_, one.stride, one.out_channels);
  }
  std::unique_ptr<Layer> operator()(const op::GlobalMeanPool&) const {
    return std::make_unique<GlobalMeanPool>(context_);
  }
  std::unique_ptr<Layer> operator()(const op::Flatten&) const { return std::make_unique<Flatten>(context_); }
  std::unique_ptr<Layer> operator()(const op::Unflatten&) const { return std::make_unique<Unflatten>(context_); }
  std::unique_ptr<Layer> operator()(const op::Input&) const { return nullptr; }  // never the main node of a layer

 private:
  std::unique_ptr<Layer> norm_after(std::unique_ptr<Convolution> conv) const {
    const GraphNode& norm = graph_.node(*spec_.norm);
    return std::make_unique<ConvNormAct>(context_, std::move(conv), norm.name, norm.shape.channels,
                                         *norm.as<op::BatchNorm>(), spec_.activation, spec_.norm_reader);
  }
  std::unique_ptr<Layer> activate(const Curve& curve) const { return std::make_unique<Activate>(context_, curve); }

  const NetworkGraph& graph_;
  const LayerSpec& spec_;
  const LayerContext& context_;
  const Tensor& dropout_key_;
  const std::string& name_;
};

}  // namespace

FusedNetwork::FusedNetwork(const NetworkGraph& graph, const LayerContext& context)
    : device_(context.device),
      store_(context.store),
      graph_(graph),
      supported_(graph.node(0).shape),
      specs_(fuse(graph, context.device.ops().norms_apply_gelu())),
      last_reader_(graph.nodes().size()) {
  const auto drops = [](const GraphNode& node) { return node.as<op::Dropout>() != nullptr; };
  if (std::ranges::any_of(graph_.nodes(), drops)) {
    dropout_key_ = device_.make_persistent(dropout_key_count, DType::f32);
  }
  for (const LayerSpec& spec : specs_) {
    for (const std::size_t input : spec.inputs) last_reader_[input] = layers_.size();
    first_parameter_.push_back(store_.parameters().size());
    const std::string& name = graph_.node(spec.main).name;
    ranges_.push_back({"forward " + name, "backward " + name});
    layers_.push_back(std::visit(MakeLayer(graph_, spec, context, dropout_key_), graph_.node(spec.main).operation));
  }
  first_parameter_.push_back(store_.parameters().size());
}

void FusedNetwork::require_supported(const Shape& input) {
  const ValueShape size = sample_shape(input);
  if (size == supported_) return;
  graph_.for_input(size);
  supported_ = size;
}

void FusedNetwork::find_what_learns(const Tensor& images) {
  learns_.assign(graph_.nodes().size(), 0);
  learns_.front() = images.layout() != Layout::images;  // the caller wants the gradient of other inputs
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    bool learns = std::ranges::any_of(specs_[layer].inputs, [&](std::size_t input) { return learns_[input] != 0; });
    for (std::size_t index = first_parameter_[layer]; index < first_parameter_[layer + 1]; ++index) {
      learns = learns || store_.parameters()[index].learns;
    }
    learns_[specs_[layer].output] = learns;
  }
}

// Reports the parameters of a layer that backward does not reach.
void FusedNetwork::complete_parameters(std::size_t layer, GradientSink& sink) {
  for (std::size_t index = first_parameter_[layer + 1]; index-- > first_parameter_[layer];) {
    complete(device_, store_.parameters()[index], sink);
  }
}

void FusedNetwork::free_values_read_last_by(std::size_t layer) {
  for (const std::size_t input : specs_[layer].inputs) {
    if (last_reader_[input] == layer) values_[input] = {};
  }
}

void FusedNetwork::draw_dropout(std::uint64_t seed, std::int64_t step, std::int64_t first_sample) {
  if (!dropout_key_) return;
  std::int64_t place = 0;
  for (const float value : dropout_key_values(seed, step, first_sample)) {
    device_.flat().set(dropout_key_.slice(place++, 1), value);
  }
}

Tensor FusedNetwork::forward(const Tensor& images, Mode mode) {
  require_supported(images.shape());
  find_what_learns(images);
  values_.assign(graph_.nodes().size(), {});
  values_.front() = {images};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const ProfilerRange range(ranges_[layer].forward);
    x_.clear();
    for (const std::size_t input : specs_[layer].inputs) x_.push_back(values_[input]);
    const std::size_t output = specs_[layer].output;
    const bool is_frozen = mode == Mode::train && learns_[output] == 0;
    values_[output] = layers_[layer]->forward(x_, is_frozen ? Mode::train_frozen : mode);
    x_.clear();
    free_values_read_last_by(layer);
  }
  return std::exchange(values_.back(), {}).x;
}

// A value's gradient is added up in the order in which its readers run in backward.
void FusedNetwork::add_gradients(const LayerSpec& spec) {
  for (std::size_t index = dx_.size(); index-- > 0;) {
    const Tensor& own = dx_[index].result;
    if (!dx_[index].is_needed) continue;
    Tensor& sum = gradients_[spec.inputs[index]];
    if (!sum) {
      sum = own;
    } else if (own && own.data() != sum.data()) {
      device_.ops().add(sum, own, sum);
    }
  }
}

Tensor FusedNetwork::backward(const Tensor& d_logits, GradientSink& sink) {
  gradients_.assign(graph_.nodes().size(), {});
  gradients_.back() = d_logits;
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    const LayerSpec& spec = specs_[layer];
    if (learns_[spec.output] == 0) {
      complete_parameters(layer, sink);
      continue;
    }
    const ProfilerRange range(ranges_[layer].backward);
    dx_.clear();
    for (const std::size_t input : spec.inputs) {
      dx_.push_back({.sum = gradients_[input], .is_needed = learns_[input] != 0});
    }
    if (spec.previous_norm && dx_[0].is_needed) {
      dx_[0].norm = layers_[*spec.previous_norm]->norm_for_reader(sink.accumulate());
    }
    const Tensor dy = std::exchange(gradients_[spec.output], {});
    layers_[layer]->backward(dy, dx_, sink);
    add_gradients(spec);
    dx_.clear();
  }
  return std::exchange(gradients_.front(), {});
}

}  // namespace lockstep
