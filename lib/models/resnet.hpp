// Residual networks, with torchvision's names: conv1, bn1, layer1.0.conv1, ..., layer4.1.downsample.0, fc.
#pragma once

#include <memory>

#include "models/model_zoo.hpp"

namespace lockstep {

std::unique_ptr<Layer> make_resnet20(const ModelOptions& options, const LayerContext& context);
std::unique_ptr<Layer> make_resnet18(const ModelOptions& options, const LayerContext& context);
std::unique_ptr<Layer> make_resnet34(const ModelOptions& options, const LayerContext& context);
std::unique_ptr<Layer> make_resnet50(const ModelOptions& options, const LayerContext& context);
std::unique_ptr<Layer> make_resnet101(const ModelOptions& options, const LayerContext& context);

}  // namespace lockstep
