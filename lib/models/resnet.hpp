// Residual networks, with torchvision's names: conv1, bn1, layer1.0.conv1, ..., layer4.1.downsample.0, fc.
#pragma once

#include <memory>
#include <string_view>

#include "models/model_zoo.hpp"

namespace lockstep {

// Suffix of the names of residual networks with blur.
inline constexpr std::string_view blur_ending = "-blur";
inline bool is_blurred(std::string_view model) { return model.ends_with(blur_ending); }

std::unique_ptr<Layer> make_resnet20(const ModelOptions& options, const LayerContext& context);
std::unique_ptr<Layer> make_resnet18(const ModelOptions& options, const LayerContext& context);
std::unique_ptr<Layer> make_resnet34(const ModelOptions& options, const LayerContext& context);
std::unique_ptr<Layer> make_resnet50(const ModelOptions& options, const LayerContext& context);
std::unique_ptr<Layer> make_resnet101(const ModelOptions& options, const LayerContext& context);

}  // namespace lockstep
