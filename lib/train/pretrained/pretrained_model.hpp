// A model that a program is given to use on data: a model file, a checkpoint, or weights that another program wrote.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "comm/same_on_ranks.hpp"
#include "dataset/shards/manifest.hpp"
#include "files/model_file.hpp"

namespace lockstep {

// Of another program's weights only the tensors are known: `name` (--model) says the model, `data` the classes, the
// picture size and the normalisation. Throws as read_pretrained_weights(); Error(usage) where `name` is needed and
// empty, or another than the file's own. Whether the data fit, rules_for() says.
ModelFile read_pretrained_model(const std::filesystem::path& path, const std::string& name, const Manifest& data);

// The same without a data set. Another program's weights are then taken for such as torchvision trains on ImageNet: of
// colour pictures of 224 x 224 pixels, in torchvision's normalisation; `classes` are their names in the order of the
// labels.
ModelFile read_pretrained_model(const std::filesystem::path& path, const std::string& name,
                                const std::vector<std::string>& classes);

// Weights, classes and preparation of pictures, for require_same_on_ranks().
RankValue identity_of_model(const std::filesystem::path& path, const ModelFile& model);

}  // namespace lockstep
