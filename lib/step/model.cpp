#include "step/model.hpp"

#include <utility>

namespace lockstep {

Model::Model(Device& device, ModelOptions model_options)
    : options(std::move(model_options)),
      store(device),
      network(make_model(options, LayerContext{device, store, statistics})) {}

}  // namespace lockstep
