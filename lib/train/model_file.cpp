#include "train/model_file.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "train/content_hash.hpp"

namespace lockstep {

namespace {

constexpr FileKind kind{"model file", "Train or copy it again?"};

}  // namespace

std::string model_hash(const ModelFile& model) {
  ContentHash hash;
  hash.add_tensors("entries", model.entries);
  return hash.digest({{"format", model_file_format},
                      {"model", model.model},
                      {"classes", model.classes},
                      {"sample_shape", {model.shape.height, model.shape.width, model.shape.channels}},
                      {"mean", model.mean},
                      {"deviation", model.deviation}});
}

void write_model_fields(TensorFileWriter& file, const ModelFile& model) {
  file.write_text("model", model.model);
  file.write_texts("classes", model.classes);
  file.write_numbers("sample_shape",
                     std::vector<std::int64_t>{model.shape.height, model.shape.width, model.shape.channels});
  file.write_numbers("mean", model.mean);
  file.write_numbers("deviation", model.deviation);
}

ModelFile read_model_fields(const TensorFileReader& file) {
  ModelFile model;
  model.model = file.texts("model")[0];
  model.classes = file.texts("classes");
  const std::vector<std::int64_t> shape = file.numbers<std::int64_t>("sample_shape", 3);
  if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 1 || size > 65536; })) {
    file.damaged("its attribute 'sample_shape' holds an impossible size");
  }
  model.shape = {shape[0], shape[1], shape[2]};
  model.mean = file.numbers<float>("mean", static_cast<std::size_t>(model.shape.channels));
  model.deviation = file.numbers<float>("deviation", static_cast<std::size_t>(model.shape.channels));
  if (!std::ranges::all_of(model.mean, [](float mean) { return std::isfinite(mean); }) ||
      !std::ranges::all_of(model.deviation, [](float value) { return std::isfinite(value) && value > 0; })) {
    file.damaged("its attributes 'mean' and 'deviation' are not a normalisation");
  }
  return model;
}

void write_model_file(const std::filesystem::path& path, const ModelFile& model) {
  TensorFileWriter file;
  file.write_number("format", model_file_format);
  write_model_fields(file, model);
  file.write_tensors(root_group, model.entries);
  file.write_text("hash", model_hash(model));
  write_file_atomically(path, file.image());
}

ModelFile read_model_file(const std::filesystem::path& path) {
  std::string image = read_file(path, tensor_file_limit_bytes);
  return parse_model_file(path, image);
}

ModelFile parse_model_file(const std::filesystem::path& path, std::string& image) {
  TensorFileReader file(kind, path.string(), image);
  file.require_format("format", model_file_format);
  ModelFile model = read_model_fields(file);
  model.entries = file.tensors(root_group);
  if (file.texts("hash")[0] != model_hash(model)) file.damaged("its hash does not match its content");
  return model;
}

}  // namespace lockstep
