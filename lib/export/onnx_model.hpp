// A trained model as an ONNX file, which other programs run.
//
//   images  fp32 [batch, channels, height, width], pixel / 255: what torchvision's ToTensor gives. The graph itself
//           subtracts the mean and divides by the deviation that the model was trained with.
//   logits  fp32 [batch, classes]
//
// batch may be any number. Names of classes, mean and deviation stand in the file's metadata too.
#pragma once

#include <string>

#include "files/model_file.hpp"
#include "nn/layer.hpp"

namespace lockstep {

// The bytes of the file. `network` is the model with its parameters registered, as `model` says, whose entries are
// those of its store. Throws Error(usage) above 2 GiB, which no reader takes in one piece.
std::string onnx_model(const Layer& network, const ModelFile& model);

}  // namespace lockstep
