// Interface of layers. Sequential and Residual are layers too, so a model is one Layer.
//
// Alone, a layer maps a tensor to a tensor (forward, backward). In a chain (Sequential, or the main branch of a
// Residual), layers use pass_on and pass_back, which allow two fusions:
// - Forward: a layer defers its batch norm to the next layer, which applies it while it reads. The normalized map is
//   never stored.
// - Backward: the next layer's backward also computes the gradient of this layer's norm.
//
// Only ConvNormAct implements them. All other layers work in any chain unchanged.
#pragma once

#include <cstdint>
#include <utility>

#include "device/ops.hpp"
#include "nn/graph_writer.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

enum class Mode { train, evaluate };

// Receives gradients during backward. An argument of backward(), not a registered callback.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // Whether this micro-batch's gradients overwrite (the first micro-batch of a step) or accumulate.
  virtual Accumulate accumulate() const = 0;
  // The gradient of `parameter` for this micro-batch is complete (stream-ordered). Each parameter is reported once per
  // micro-batch, in the reverse order of registration.
  virtual void ready(const Parameter& parameter) = 0;
};

class ConvNormAct;

// Output of a layer in a chain. `front` is set if the map's norm is deferred, or if the reader must compute that norm's
// gradient. It is then the unit that owns the norm.
struct PassedOn {
  NormedMap map;
  const ConvNormAct* front = nullptr;
};

// What a layer does with the batch norm before it; each value includes the one before.
// - maps: nothing, it reads plain maps.
// - normed_maps: backward computes the gradient of the norm, after the activation, added to `sum`.
// - pending_norms: forward applies a deferred norm.
enum class Reads : std::uint8_t { maps, normed_maps, pending_norms };

class Layer {
 public:
  virtual ~Layer() = default;

  // Shape of forward(x) for an x of this shape. Throws Error(usage) if the layer does not support it.
  virtual Shape output_shape(const Shape& x) const = 0;
  // Under Mode::train the layer saves what backward needs.
  virtual Tensor forward(const Tensor& x, Mode mode) = 0;
  // Returns the gradient of x; empty if x is `images`. Frees what forward saved. `dy` may be overwritten, so callers
  // must not read it again.
  virtual Tensor backward(const Tensor& dy, GradientSink& sink) = 0;
  // Adds to `graph` what forward() under Mode::evaluate does with x, and returns the result.
  virtual GraphValue write(GraphWriter& graph, const GraphValue& x) const = 0;

  virtual Reads reads() const { return Reads::maps; }
  // forward() for a next layer that reads `next`. x has the form that this layer's reads() states.
  virtual PassedOn pass_on(const PassedOn& x, Reads /*next*/, Mode mode) { return {{forward(x.map.x, mode)}}; }
  // backward() of pass_on(). `gradient` is the result of the next layer's pass_back(), and may be overwritten like dy.
  // If the layer can accumulate into `sum`, it does so and returns `sum`. Otherwise, or if `sum` is empty, it returns
  // its own gradient alone.
  virtual Tensor pass_back(Tensor gradient, const Tensor& /*sum*/, GradientSink& sink) {
    const Tensor dy = std::move(gradient);
    return backward(dy, sink);
  }
};

// How the next forward under Mode::train contributes to the step's batch statistics. Set before each micro-batch.
struct StatisticsShare {
  float scale = 1.0F;                             // 1 / (number of micro-batches of all ranks)
  Accumulate accumulate = Accumulate::overwrite;  // overwrite for the first micro-batch, then add
  NormGroup* group = nullptr;  // ranks that share batch statistics (synchronized batch norm); null: none
};

// Constructor arguments of every layer. `statistics` is read at each forward and outlives the layer.
struct LayerContext {
  Device& device;
  ParameterStore& store;
  const StatisticsShare& statistics;
};

}  // namespace lockstep
