// Small networks without residual blocks.
#pragma once

#include "models/model_zoo.hpp"

namespace lockstep {

// conv1 6@5x5, pool, conv2 16@5x5, pool, fc1 120, fc2 84, fc3 classes; ReLU after all layers except fc3.
NetworkGraph lenet_graph(const ModelOptions& options);

// A 2x2 convolution with bias, 2 x 4 x channels@2x2, and three blocks of 64, 256 and 256 channels (airbench95: 128, 384
// and 384): 3x3 convolution, pool, norm, 3x3 convolution, norm. Then the largest of each 3 x 3 pixels, fc without bias,
// and a ninth of its logits. GELU after the first convolution and all norms.
NetworkGraph airbench_graph(const ModelOptions& options);
NetworkGraph airbench95_graph(const ModelOptions& options);

// Two blocks (5x5 convolution with bias, batch norm, ReLU, pool) with 16 and 32 channels, then fc.
NetworkGraph convnet_graph(const ModelOptions& options);

}  // namespace lockstep
