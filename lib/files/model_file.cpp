#include "files/model_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/io/file.hpp"
#include "dataset/shards/manifest.hpp"
#include "files/content_hash.hpp"
#include "network/network_text.hpp"
#include "network/onnx/onnx_network.hpp"
#include "picture/decode.hpp"

namespace lockstep {

namespace {

constexpr FileKind model_kind{"model file", "Copy it again, or train it again."};

constexpr std::int64_t largest_side = 65536;
constexpr const char* shorter_side = "shorter_side";
constexpr const char* step = "step";
constexpr const char* sample_bits = "sample_bits";
constexpr const char* network = "network";
constexpr const char* impossible_shape = "its attribute 'sample_shape' has an invalid size";

void write_network(TensorFileWriter& file, const std::string& text) {
  if (text.empty()) return;
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size(); at += tensor_file_limits::text_bytes) {
    pieces.push_back(text.substr(at, tensor_file_limits::text_bytes));
  }
  file.write_texts(network, pieces);
}

// Empty if there is none.
std::string read_network(const TensorFileReader& file) {
  std::string text;
  if (!file.has_attribute(network)) return text;
  for (const std::string& piece : file.texts(network)) text += piece;
  return text;
}

// The name of a model in a file is never used as a path.
std::string fault_of_network(const ModelFile& model) try {
  if (model.network.empty()) {
    return is_onnx_path(model.model) ? "it has no description of the network of its model" : "";
  }
  network_from_text(model.network);
  return "";
} catch (const Error& error) {
  const std::string words = error.what();
  return words.substr(0, words.find_last_not_of('.') + 1);
}

}  // namespace

std::string fault_of(const ModelFile& model) {
  const auto is_impossible = [](std::int64_t size) { return size < 1 || size > largest_side; };
  if (is_impossible(model.shape.height) || is_impossible(model.shape.width) || is_impossible(model.shape.channels)) {
    return impossible_shape;
  }
  const auto channels = static_cast<std::size_t>(model.shape.channels);
  const bool is_normalisation =
      model.mean.size() == channels && model.deviation.size() == channels &&
      std::ranges::all_of(model.mean, [](float mean) { return mean >= 0 && mean <= 1; }) &&
      std::ranges::all_of(model.deviation, [](float value) { return value >= smallest_deviation && value <= 1; });
  if (!is_normalisation) return "its attributes 'mean' and 'deviation' are not a valid normalization";
  const std::int64_t side = model.shorter_side.value_or(0);
  if (side < 0 || side > largest_side) return "its attribute 'shorter_side' is not a valid size";
  const std::int64_t bits = model.sample_bits.value_or(max_sample_bits);
  if (bits < least_sample_bits || bits > max_sample_bits) return "its attribute 'sample_bits' is not a valid number";
  if (model.step.value_or(0) < 0) return "its attribute 'step' is not a valid number";
  return fault_of_network(model);
}

ModelOptions model_options(const ModelFile& file) {
  ModelOptions options{file.model, file.shape, static_cast<std::int64_t>(file.classes.size())};
  options.network = file.network;
  return options;
}

std::int32_t format_of(const ModelFile& model) {
  if (!model.network.empty()) return model_file_format;
  if (model.step) return model_file_format - 1;
  return model.shorter_side ? model_file_format - 2 : model_file_format - 3;
}

std::string model_hash(const ModelFile& model) {
  ContentHash hash;
  hash.add_tensors(model_hash_field, model.entries);
  return model_hash(model, std::move(hash));
}

std::string model_hash(const ModelFile& model, ContentHash hash) {
  nlohmann::json fields = {
      {"format", format_of(model)}, {"model", model.model},
      {"classes", model.classes},   {"sample_shape", {model.shape.height, model.shape.width, model.shape.channels}},
      {"mean", model.mean},         {"deviation", model.deviation}};
  if (model.shorter_side) fields[shorter_side] = *model.shorter_side;
  if (model.step) fields[step] = *model.step;
  if (model.sample_bits) fields[sample_bits] = *model.sample_bits;
  if (!model.network.empty()) fields[network] = model.network;
  return hash.digest(std::move(fields));
}

void write_model_fields(TensorFileWriter& file, const ModelFile& model) {
  const std::string fault = fault_of(model);
  require(fault.empty(), Failure::usage,
          "cannot write a model file or checkpoint: {}. No program could read it. Train on another data set.", fault);
  file.write_text("model", model.model);
  file.write_texts("classes", model.classes);
  file.write_numbers("sample_shape",
                     std::vector<std::int64_t>{model.shape.height, model.shape.width, model.shape.channels});
  file.write_numbers("mean", model.mean);
  file.write_numbers("deviation", model.deviation);
  if (model.shorter_side) file.write_numbers(shorter_side, std::vector<std::int64_t>{*model.shorter_side});
  if (model.step) file.write_numbers(step, std::vector<std::int64_t>{*model.step});
  if (model.sample_bits) file.write_numbers(sample_bits, std::vector<std::int64_t>{*model.sample_bits});
  write_network(file, model.network);
}

ModelFile read_model_fields(const TensorFileReader& file) {
  ModelFile model;
  model.model = file.texts("model")[0];
  model.classes = file.texts("classes");
  const std::vector<std::int64_t> shape = file.numbers<std::int64_t>("sample_shape", 3);
  model.shape = {shape[0], shape[1], shape[2]};
  // Checked before it is used as a count, because the normalization has one value for each channel.
  if (model.shape.channels < 1 || model.shape.channels > largest_side) file.damaged(impossible_shape);
  model.mean = file.numbers<float>("mean", static_cast<std::size_t>(model.shape.channels));
  model.deviation = file.numbers<float>("deviation", static_cast<std::size_t>(model.shape.channels));
  if (file.has_attribute(shorter_side)) model.shorter_side = file.numbers<std::int64_t>(shorter_side, 1)[0];
  if (file.has_attribute(step)) model.step = file.numbers<std::int64_t>(step, 1)[0];
  if (file.has_attribute(sample_bits)) model.sample_bits = file.numbers<std::int64_t>(sample_bits, 1)[0];
  model.network = read_network(file);
  if (const std::string fault = fault_of(model); !fault.empty()) file.damaged(fault);
  return model;
}

namespace {

std::vector<std::byte> model_image(const ModelFile& model) {
  TensorFileWriter file;
  file.write_number("format", format_of(model));
  write_model_fields(file, model);
  file.write_tensors(root_group, model.entries);
  file.write_text("hash", model_hash(model));
  return file.image();
}

}  // namespace

void write_model_file(const std::filesystem::path& path, const ModelFile& model) {
  write_file_atomically(path, model_image(model));
}

ModelFile parse_model_file(const std::filesystem::path& path, std::string& image) {
  TensorFileReader file(model_kind, path.string(), image);
  file.require_format("format", model_file_format - 3, model_file_format);
  ModelFile model = read_model_fields(file);
  model.entries = file.tensors(root_group);
  if (file.texts("hash")[0] != model_hash(model)) file.damaged("its hash does not match its content");
  return model;
}

}  // namespace lockstep
