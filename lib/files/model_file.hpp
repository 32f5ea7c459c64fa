// A trained model as one HDF5 file that PyTorch users open with h5py in three lines.
//
//   /<name>          fp32 dataset each, torchvision's names and layouts ("layer1.0.conv1.weight", OIHW)
//   @format          int32, 3; 2 without @step, 1 without @shorter_side too, as earlier versions wrote it
//   @model           text [1], a name of the model zoo
//   @classes         text [classes], names in the order of the labels
//   @sample_shape    int64 [3], height, width, channels
//   @mean, @deviation  fp32 [channels], of pixel / 255: what training normalised by
//   @shorter_side    int64 [1], that pictures are resized to before tests take their middle; 0: they are taken as they
//                    are stored
//   @step            int64 [1], steps that trained the weights
//   @sample_bits     int64 [1], as in the manifest of the training data, only where that has them
//   @hash            text [1], xxh3-128 over everything else, 32 hex digits
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "files/tensor_file.hpp"
#include "nn/parameter_store.hpp"
#include "nn/sample_shape.hpp"

namespace lockstep {

inline constexpr std::int32_t model_file_format = 3;
// In the output folder of a training: the weights of its best test.
inline constexpr const char* best_model_file = "model-best.h5";

struct ModelFile {
  std::string model;
  std::vector<std::string> classes;
  SampleShape shape;
  std::vector<float> mean;
  std::vector<float> deviation;
  std::vector<ParameterStore::Entry> entries;  // in name order, running statistics included
  // That pictures are resized to before tests take their middle; 0: they are taken as they are stored. None: the file
  // does not say.
  std::optional<std::int64_t> shorter_side = {};
  // That trained the weights. None: the file does not say; a checkpoint says it in its state. Only with a shorter side.
  std::optional<std::int64_t> step = {};
  // Of 16-bit PNG samples in the pictures that it learned from (dataset/pictures/sample_bits.hpp). None: they are not
  // noted.
  std::optional<std::int64_t> sample_bits = {};
};

// As written: an earlier one where the file has no step, or no shorter side.
std::int32_t format_of(const ModelFile& model);

// xxh3-128 over every field, names, dims and fp32 bytes, as 32 hex digits.
std::string model_hash(const ModelFile& model);

// What no reader believes of a model's fields; empty if there is nothing.
std::string fault_of(const ModelFile& model);

// The whole file is built in memory first: it is on disk complete or not at all. Throws Error naming the path.
void write_model_file(const std::filesystem::path& path, const ModelFile& model);

// Of a file's bytes, which it may change; `path` is for messages. Trusts nothing: every name, type and size is checked
// against the file's own length before memory is taken, then the hash. Throws Error(bad_data) naming what is wrong with
// it. read_weights() in files/checkpoint/checkpoint.hpp opens either kind of file.
ModelFile parse_model_file(const std::filesystem::path& path, std::string& image);

// What a model is, without its tensors: the attributes that model files and checkpoints have in common.
// The shorter side stands there where it is known, which their formats tell.
void write_model_fields(TensorFileWriter& file, const ModelFile& model);
ModelFile read_model_fields(const TensorFileReader& file);

}  // namespace lockstep
