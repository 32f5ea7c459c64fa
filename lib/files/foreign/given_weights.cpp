#include "files/foreign/given_weights.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/io/file.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/foreign/hdf5_tensors.hpp"
#include "files/foreign/safetensors.hpp"

namespace lockstep {
namespace {

// torch.save() writes a ZIP archive with a pickle in it, and wrote the pickle itself before.
bool looks_like_pickle(std::string_view image) { return image.starts_with("PK\3\4") || image.starts_with('\x80'); }

[[noreturn]] void throw_pickle(const std::filesystem::path& path) {
  throw Error(
      Failure::usage,
      fmt::format("'{}' is a pickle of PyTorch (opening one can run code, so Lockstep never does). Convert it in "
                  "Python: import h5py, torch; state = torch.load(\"weights.pth\", map_location=\"cpu\", "
                  "weights_only=True); file = h5py.File(\"weights.h5\", \"w\"); file.update({{name: "
                  "values.float().numpy() for name, values in state.items()}}); file.close()",
                  path.string()));
}

bool is_ours(const WeightBytes& file) {
  return has_root_attribute(file, "format") || has_root_attribute(file, "checkpoint_format");
}

using Json = nlohmann::json;

template <typename Value>
Value value_in(const WeightBytes& file, const std::map<std::string, std::string>& metadata, const char* name) {
  try {
    return Json::parse(metadata.at(name)).get<Value>();
  } catch (const Json::exception&) {
    file.refuse(fmt::format("its metadata's '{}' is not as export_model writes it", name));
  }
}

// All but the tensors; nothing where another program wrote the metadata.
ModelFile exported_model(const WeightBytes& file, const std::map<std::string, std::string>& metadata) {
  const auto is_there = [&](const char* name) { return metadata.contains(name); };
  if (!std::ranges::all_of(std::array{"model", "classes", "sample_shape", "mean", "deviation"}, is_there)) return {};
  ModelFile model;
  model.model = metadata.at("model");
  model.classes = value_in<std::vector<std::string>>(file, metadata, "classes");
  const auto shape = value_in<std::array<std::int64_t, 3>>(file, metadata, "sample_shape");
  model.shape = {shape[0], shape[1], shape[2]};
  model.mean = value_in<std::vector<float>>(file, metadata, "mean");
  model.deviation = value_in<std::vector<float>>(file, metadata, "deviation");
  if (is_there("shorter_side")) model.shorter_side = value_in<std::int64_t>(file, metadata, "shorter_side");
  if (const std::string fault = fault_of(model); !fault.empty()) file.refuse(fault);
  return model;
}

}  // namespace

WeightsKind kind_of_weights(const std::filesystem::path& path, std::string& image) {
  if (looks_like_hdf5(std::as_bytes(std::span(image)))) {
    if (!has_hash_line(image) && !is_ours({path.string(), image})) return WeightsKind::state_dict;
    return is_checkpoint(path, image) ? WeightsKind::checkpoint : WeightsKind::model_file;
  }
  if (looks_like_safetensors(image)) return WeightsKind::safetensors;
  if (looks_like_pickle(image)) throw_pickle(path);
  throw Error(Failure::usage,
              fmt::format("'{}' holds no weights (neither a model file, a checkpoint, safetensors nor HDF5). Is it the "
                          "right file?",
                          path.string()));
}

ModelFile parse_foreign_weights(const std::filesystem::path& path, WeightsKind kind, const std::string& image) {
  const WeightBytes file(path.string(), image);
  ModelFile model;
  if (kind == WeightsKind::safetensors) model = exported_model(file, safetensors_metadata(file));
  model.entries = kind == WeightsKind::safetensors ? read_safetensors(file) : read_hdf5_tensors(file);
  return model;
}

ModelFile read_given_weights(const std::filesystem::path& path) {
  std::string image = read_file(path, tensor_file_limits::file_bytes);
  const WeightsKind kind = kind_of_weights(path, image);
  switch (kind) {
    case WeightsKind::model_file:
      return parse_model_file(path, image);
    case WeightsKind::checkpoint:
      return model_to_use(parse_checkpoint(path, image));
    case WeightsKind::safetensors:
    case WeightsKind::state_dict:
      break;
  }
  return parse_foreign_weights(path, kind, image);
}

}  // namespace lockstep
