// A network and its parameters on one device.
#pragma once

#include <functional>
#include <memory>

#include "device/device.hpp"
#include "models/model_zoo.hpp"
#include "nn/network.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

using NetworkMaker = std::function<std::unique_ptr<Network>(const ModelOptions&, const LayerContext&)>;

// Layers and parameters. The caller allocates `store`, because a reducer may own the gradients' memory.
struct Model {
  Model(Device& device, ModelOptions options, const NetworkMaker& make_network = make_model);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  ModelOptions options;
  StatisticsShare statistics;
  ParameterStore store;
  std::unique_ptr<Network> network;
};

}  // namespace lockstep
