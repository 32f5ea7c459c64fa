// A network with its parameters on one device.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "models/model_zoo.hpp"
#include "nn/layer.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

// Layers and parameters; the caller allocates `store`, because a reducer may own the gradients' memory.
struct Model {
  Model(Device& device, ModelOptions options);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  ModelOptions options;
  StatisticsShare statistics;
  ParameterStore store;
  std::unique_ptr<Layer> network;
};

}  // namespace lockstep
