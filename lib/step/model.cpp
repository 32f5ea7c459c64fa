#include "step/model.hpp"

#include <utility>

namespace lockstep {

Model::Model(Device& device, ModelOptions model_options, const NetworkMaker& make_network)
    : options(std::move(model_options)),
      store(device),
      network(make_network(options, LayerContext{device, store, statistics})) {}

}  // namespace lockstep
