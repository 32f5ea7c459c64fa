// Layers compose: Sequential and Residual are layers, so a model is one Layer.
//
// Alone, a layer maps a tensor to a tensor (forward, backward). In a chain (Sequential, the main branch of a Residual)
// a layer may leave its norm to the next one, which applies it while it reads, so that the result is never in memory;
// and the gradient of its norm, which the next one's backward finds: pass_on and pass_back. Only ConvNormAct does so; a
// layer that knows nothing of it works in any chain as it is.
#pragma once

#include <cstdint>
#include <utility>

#include "device/ops.hpp"
#include "nn/graph_writer.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

enum class Mode { train, evaluate };

// Where backward reports gradients. A parameter of backward(), not a callback registered somewhere.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // Whether this micro-batch's gradients overwrite (the first micro-batch of a step) or add.
  virtual Accumulate accumulate() const = 0;
  // The gradient of `parameter` for this micro-batch is complete (stream-ordered). Each parameter is reported once a
  // micro-batch, in the reverse order of registration.
  virtual void ready(const Parameter& parameter) = 0;
};

class ConvNormAct;

// What a layer of a chain passes on: a map and, where its norm is deferred or the reader is to find that norm's
// gradient, the unit whose norm it is.
struct PassedOn {
  NormedMap map;
  const ConvNormAct* front = nullptr;
};

// What a layer makes of the norm in front of it, each more than the one before: nothing; its gradient in backward,
// after the activation, added to `sum`; and its result, if it is deferred.
enum class Reads : std::uint8_t { maps, normed_maps, pending_norms };

class Layer {
 public:
  virtual ~Layer() = default;

  // What forward(x) returns for an x of this shape. Throws Error(usage) where the layer cannot take it.
  virtual Shape output_shape(const Shape& x) const = 0;
  // Under Mode::train the layer keeps what backward needs.
  virtual Tensor forward(const Tensor& x, Mode mode) = 0;
  // Gradient with respect to x, empty if x is `images`. Gives back what forward kept. `dy` may be overwritten: callers
  // hand it over and do not read it again.
  virtual Tensor backward(const Tensor& dy, GradientSink& sink) = 0;
  // Tells `graph` what forward() under Mode::evaluate does with x, and returns its result.
  virtual GraphValue write(GraphWriter& graph, const GraphValue& x) const = 0;

  virtual Reads reads() const { return Reads::maps; }
  // forward() before a layer that reads `next`. x is what this layer reads().
  virtual PassedOn pass_on(const PassedOn& x, Reads /*next*/, Mode mode) { return {{forward(x.map.x, mode)}}; }
  // backward() of pass_on(): `gradient` is what the next layer's pass_back() returned, handed over as dy is. A layer
  // that can add its result to `sum` in passing does so and returns `sum`; with an empty one, or else, its result
  // alone.
  virtual Tensor pass_back(Tensor gradient, const Tensor& /*sum*/, GradientSink& sink) {
    const Tensor dy = std::move(gradient);
    return backward(dy, sink);
  }
};

// How the next forward under Mode::train contributes to the step's batch statistics. Set before each micro-batch.
struct StatisticsShare {
  float scale = 1.0F;                             // 1 / (micro-batches of all ranks)
  Accumulate accumulate = Accumulate::overwrite;  // of the first micro-batch; the others add
  NormGroup* group = nullptr;  // ranks whose micro-batches have their statistics together; null: by itself
};

// What a layer is built with. `statistics` is read at each forward and outlives the layer.
struct LayerContext {
  Device& device;
  ParameterStore& store;
  const StatisticsShare& statistics;
};

}  // namespace lockstep
