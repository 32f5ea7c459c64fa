#include "nn/layer.hpp"

#include "device/flat/flat_passes.hpp"

namespace lockstep {

void complete(Device& device, const Parameter& parameter, GradientSink& sink) {
  if (!parameter.learns) device.flat().set(parameter.gradient, 0.0F);
  sink.ready(parameter);
}

}  // namespace lockstep
