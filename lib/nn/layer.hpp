// Interface of layers. A layer computes one value from one or more, and in backward their gradients from that value's.
// A FusedNetwork (nn/fused_network.hpp) runs them.
//
// A layer that ends with a batch norm may leave two things to the convolution that reads its value:
// - Forward: the reader applies the norm while it reads. The normalized map is never stored.
// - Backward: the reader also computes the norm's gradient.
// network/fusion.hpp decides about both.
#pragma once

#include <cstdint>
#include <span>

#include "device/ops.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

enum class Mode {
  train,
  train_frozen,  // as train, but backward does not reach the layer, so it keeps nothing
  evaluate,
};

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

// Reports a parameter as ready. The gradient of one that does not learn becomes zero.
void complete(Device& device, const Parameter& parameter, GradientSink& sink);

// The gradient of a value that a layer has read.
struct InputGradient {
  Tensor sum;              // of the layers that have run before in backward; empty: none has
  PreviousNorm norm = {};  // if not empty: compute this norm's gradient, too, from the whole sum
  bool is_needed = true;   // false: nothing before it learns, so the layer may leave `result` empty
  // Set by the layer: `sum`, if the layer has added its own gradient to it, else its own gradient alone.
  Tensor result = {};
};

class Layer {
 public:
  virtual ~Layer() = default;

  // Under Mode::train the layer keeps what backward needs.
  virtual NormedMap forward(std::span<const NormedMap> x, Mode mode) = 0;
  // `dy` may be overwritten, and may become one of the results. Frees what forward kept.
  virtual void backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink& sink) = 0;
  // Between forward and backward: the norm whose gradient the layer leaves to its reader. Empty: none.
  virtual PreviousNorm norm_for_reader(Accumulate /*accumulate*/) const { return {}; }
};

// A layer that reads one value, whose norm has been applied.
class PlainLayer : public Layer {
 public:
  NormedMap forward(std::span<const NormedMap> x, Mode mode) final { return {compute(x[0].x, mode)}; }
  void backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink& sink) final {
    dx[0].result = differentiate(dy, sink);
  }

 private:
  virtual Tensor compute(const Tensor& x, Mode mode) = 0;
  // Returns the gradient of x. `dy` may be overwritten.
  virtual Tensor differentiate(const Tensor& dy, GradientSink& sink) = 0;
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
