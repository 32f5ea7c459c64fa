#include "train/given/given_model.hpp"

#include "files/foreign/given_weights.hpp"

namespace lockstep {

ModelFile read_given_model(const std::filesystem::path& path, const std::string& name, const Manifest& data) {
  ModelFile model = read_given_weights(path);
  if (!model.model.empty()) {
    require(name.empty() || name == model.model, Failure::usage,
            "'{}' is a '{}' by its own word, not a '{}'. Leave out --model.", path.string(), model.model, name);
    return model;
  }
  require(!name.empty(), Failure::usage,
          "'{}' was written by another program and does not say which model its weights are of. State it: --model.",
          path.string());
  model.model = name;
  model.classes = data.classes;
  model.shape = data.shape;
  model.mean = data.mean;
  model.deviation = data.deviation;
  return model;
}

}  // namespace lockstep
