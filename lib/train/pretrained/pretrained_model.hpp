// Reads a model given to a program: a model file, a checkpoint, or weights of another program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "comm/same_on_ranks.hpp"
#include "dataset/shards/manifest.hpp"
#include "files/model_file.hpp"

namespace lockstep {

// Another program's weights contain only tensors. `name` (--model) then identifies the model, and `data` provides
// classes, image size and normalization. Does not check whether the data fit; see rules_for(). Throws as
// read_pretrained_weights(), and Error(usage) if `name` is required but empty, or differs from the file's own.
ModelFile read_pretrained_model(const std::filesystem::path& path, const std::string& name, const Manifest& data);

// The same without a data set. Another program's weights are then assumed to be trained like torchvision's on ImageNet:
// RGB pictures of 224 x 224 pixels with torchvision's normalization. `classes` are the class names in the order of the
// labels.
ModelFile read_pretrained_model(const std::filesystem::path& path, const std::string& name,
                                const std::vector<std::string>& classes);

// Weights, classes and picture preparation, for require_same_on_ranks().
RankValue identity_of_model(const std::filesystem::path& path, const ModelFile& model);

}  // namespace lockstep
