// Layers compose: Sequential and Residual are layers, so a model is one Layer.
#pragma once

#include "device/ops.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

enum class Mode { train, evaluate };

// Where backward reports gradients. A parameter of backward(), not a callback registered somewhere.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // Whether this part's gradients overwrite (the first part of a step) or add.
  virtual Accumulate accumulate() const = 0;
  // The gradient of `parameter` for this part is complete (stream-ordered). Each parameter is reported once a part, in
  // the reverse order of registration.
  virtual void ready(const Parameter& parameter) = 0;
};

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
};

// How the next forward under Mode::train contributes to the step's batch statistics. Set before each part.
struct StatisticsShare {
  float scale = 1.0F;                             // 1 / (parts of all ranks)
  Accumulate accumulate = Accumulate::overwrite;  // of the first part; the others add
};

// What a layer is built with. `statistics` is read at each forward and outlives the layer.
struct LayerContext {
  Device& device;
  ParameterStore& store;
  const StatisticsShare& statistics;
};

}  // namespace lockstep
