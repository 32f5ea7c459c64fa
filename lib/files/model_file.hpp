// A trained model as one HDF5 file, which PyTorch users can open with h5py in three lines.
//
//   /<name>          fp32 datasets, with torchvision's names and layouts ("layer1.0.conv1.weight", OIHW)
//   @format          int32, 3; 4 with @network; in files of earlier versions 2 (no @step) or 1 (also no @shorter_side)
//   @model           text [1], a name of the model zoo, or the name of the ONNX file with which the training began
//   @network         text [pieces], the description of a network that is not in the model zoo (network_text.hpp); goes
//                    on in @network2, ..., because an attribute is limited to 64 KiB
//   @classes         text [classes], names in label order
//   @sample_shape    int64 [3], height, width, channels
//   @mean, @deviation  fp32 [channels], for pixel / 255: the normalization of the training
//   @shorter_side    int64 [1], size to which images are resized before the center crop of tests; 0: used as stored
//   @step            int64 [1], number of steps that trained the weights
//   @sample_bits     int64 [1], as in the manifest of the training data, only if the manifest has it
//   @hash            text [1], xxh3-128 over everything else, 32 hex digits
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "files/content_hash.hpp"
#include "files/tensor_file.hpp"
#include "models/model_zoo.hpp"
#include "nn/parameter_store.hpp"
#include "nn/sample_shape.hpp"

namespace lockstep {

inline constexpr std::int32_t model_file_format = 4;
// In the output folder of a training: the weights of its best test.
inline constexpr const char* best_model_file = "model-best.h5";

struct ModelFile {
  std::string model;
  std::vector<std::string> classes;
  SampleShape shape;
  std::vector<float> mean;
  std::vector<float> deviation;
  std::vector<ParameterStore::Entry> entries;  // in name order, with the running statistics
  // Size to which images are resized before the center crop of tests; 0: used as stored. None: not in the file.
  std::optional<std::int64_t> shorter_side = {};
  // Number of steps that trained the weights. None: not in the file. A checkpoint has it in its state. Requires a
  // shorter side.
  std::optional<std::int64_t> step = {};
  // Bits of 16-bit PNG samples that the training used (dataset/pictures/sample_bits.hpp). None: not recorded.
  std::optional<std::int64_t> sample_bits = {};
  std::string network = {};  // ModelOptions::network
};

// The model whose weights these are.
ModelOptions model_options(const ModelFile& file);

// The format that is written: an earlier one if the model has no description of a network, no step or no shorter side.
std::int32_t format_of(const ModelFile& model);

// xxh3-128 over every field, names, dims and fp32 bytes, as 32 hex digits.
std::string model_hash(const ModelFile& model);
// The same without model.entries: `hash` has them as the field model_hash_field.
inline constexpr const char* model_hash_field = "entries";
std::string model_hash(const ModelFile& model, ContentHash hash);

// Why readers would reject a model's fields; empty if they would not.
std::string fault_of(const ModelFile& model);

// Builds the whole file in memory first. On disk it is then complete or absent. Throws Error with the path.
void write_model_file(const std::filesystem::path& path, const ModelFile& model);

// From a file's bytes, which may be changed; `path` is for messages. Treats the file as untrusted: checks every name,
// type and size against the file's length before it allocates memory, then checks the hash. Throws Error(bad_data) with
// the defect. read_weights() in files/checkpoint/checkpoint.hpp reads model files and checkpoints.
ModelFile parse_model_file(const std::filesystem::path& path, std::string& image);

// The fields of a model without its tensors: the attributes that model files and checkpoints share. They include the
// shorter side if it is known, which the format number tells.
void write_model_fields(TensorFileWriter& file, const ModelFile& model);
ModelFile read_model_fields(const TensorFileReader& file);

}  // namespace lockstep
