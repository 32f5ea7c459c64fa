// Exports a trained model as an ONNX file.
//
//   images  fp32 [batch, channels, height, width], pixel / 255, as from torchvision's ToTensor. The graph itself
//           subtracts the mean and divides by the standard deviation of the training data.
//   logits  fp32 [batch, classes]
//
// batch is a dynamic dimension. The file's metadata also holds the class names, mean and deviation.
#pragma once

#include <string>

#include "files/model_file.hpp"
#include "network/graph.hpp"

namespace lockstep {

// Returns the bytes of the file. `network` is the network of `model`, whose entries are its parameters and statistics.
// Throws Error(usage) above 2 GiB, the limit of a protobuf message.
std::string onnx_model(const NetworkGraph& network, const ModelFile& model);

}  // namespace lockstep
