// A model that a program is given to use on data: a model file, a checkpoint, or weights that another program wrote.
#pragma once

#include <filesystem>
#include <string>

#include "dataset/shards/manifest.hpp"
#include "files/model_file.hpp"

namespace lockstep {

// Of another program's weights only the tensors are known: `name` (--model) says the model, `data` the classes, the
// picture size and the normalisation. Throws as read_given_weights(); Error(usage) where `name` is needed and empty, or
// another than the file's own. Whether the data fit, rules_for() says.
ModelFile read_given_model(const std::filesystem::path& path, const std::string& name, const Manifest& data);

}  // namespace lockstep
