// Residual networks, with torchvision's names: conv1, bn1, layer1.0.conv1, ..., layer4.1.downsample.0, fc.
#pragma once

#include <string_view>

#include "models/model_zoo.hpp"

namespace lockstep {

// Suffix of the names of residual networks with blur.
inline constexpr std::string_view blur_ending = "-blur";
inline bool is_blurred(std::string_view model) { return model.ends_with(blur_ending); }

NetworkGraph resnet20_graph(const ModelOptions& options);
NetworkGraph resnet18_graph(const ModelOptions& options);
NetworkGraph resnet34_graph(const ModelOptions& options);
NetworkGraph resnet50_graph(const ModelOptions& options);
NetworkGraph resnet101_graph(const ModelOptions& options);

}  // namespace lockstep
