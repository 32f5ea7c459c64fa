#include "train/model.hpp"

namespace lockstep {

Model::Model(Device& device, const ModelOptions& model_options)
    : options(model_options), store(device), network(make_model(options, LayerContext{device, store, statistics})) {}

}  // namespace lockstep
