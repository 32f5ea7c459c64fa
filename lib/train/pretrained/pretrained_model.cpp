#include "train/pretrained/pretrained_model.hpp"

#include <fmt/format.h>

#include <utility>

#include "files/import/pretrained_weights.hpp"

namespace lockstep {

namespace {

bool is_ours(const ModelFile& model) { return !model.model.empty(); }

void require_name(const std::filesystem::path& path, const ModelFile& model, const std::string& name) {
  if (is_ours(model)) {
    require(name.empty() || name == model.model, Failure::usage, "'{}' holds the model '{}', not '{}'. Remove --model.",
            path.string(), model.model, name);
    return;
  }
  require(!name.empty(), Failure::usage,
          "'{}' was written by another program and does not name its model. Set --model.", path.string());
}

}  // namespace

ModelFile read_pretrained_model(const std::filesystem::path& path, const std::string& name, const Manifest& data) {
  ModelFile model = read_pretrained_weights(path);
  require_name(path, model, name);
  if (is_ours(model)) return model;
  return {name, data.classes, data.shape,      data.mean, data.deviation, std::move(model.entries),
          {},   {},           data.sample_bits};
}

ModelFile read_pretrained_model(const std::filesystem::path& path, const std::string& name,
                                const std::vector<std::string>& classes) {
  ModelFile model = read_pretrained_weights(path);
  require_name(path, model, name);
  if (is_ours(model)) return model;
  require(!classes.empty(), Failure::usage,
          "'{}' was written by another program and does not list its classes. Set --data or --classes.", path.string());
  return {name, classes, {224, 224, 3}, {0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}, std::move(model.entries)};
}

RankValue identity_of_model(const std::filesystem::path& path, const ModelFile& model) {
  return {fmt::format("model '{}'", path.string()), "hash " + model_hash(model)};
}

}  // namespace lockstep
