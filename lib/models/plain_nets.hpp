// Small networks without residual blocks.
#pragma once

#include "models/model_zoo.hpp"

namespace lockstep {

// conv1 6@5x5, pool, conv2 16@5x5, pool, fc1 120, fc2 84, fc3 classes; ReLU after all layers except fc3.
NetworkGraph lenet_graph(const ModelOptions& options);

// Two blocks (5x5 convolution with bias, batch norm, ReLU, pool) with 16 and 32 channels, then fc.
NetworkGraph convnet_graph(const ModelOptions& options);

}  // namespace lockstep
