// Small networks without residual blocks.
#pragma once

#include <memory>

#include "models/model_zoo.hpp"

namespace lockstep {

// conv1 6@5x5, pool, conv2 16@5x5, pool, fc1 120, fc2 84, fc3 classes; ReLU after all layers except fc3.
std::unique_ptr<Layer> make_lenet(const ModelOptions& options, const LayerContext& context);

// Two blocks (5x5 convolution with bias, batch norm, ReLU, pool) with 16 and 32 channels, then fc.
std::unique_ptr<Layer> make_convnet(const ModelOptions& options, const LayerContext& context);

}  // namespace lockstep
