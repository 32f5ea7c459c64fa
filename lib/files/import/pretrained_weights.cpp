#include "files/import/pretrained_weights.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/import/hdf5_tensors.hpp"
#include "files/import/safetensors.hpp"
#include "network/onnx/onnx_network.hpp"

namespace lockstep {
namespace {

bool is_zip(std::string_view start) { return start.starts_with("PK\3\4"); }

[[noreturn]] void throw_pickle(const std::filesystem::path& path) {
  throw Error(
      Failure::usage,
      fmt::format("'{}' is a PyTorch pickle. Opening one can run code, so Lockstep never does. Convert it in Python: "
                  "import h5py, torch; state = torch.load(\"weights.pth\", map_location=\"cpu\", weights_only=True); "
                  "state = state.get(\"state_dict\", state.get(\"model\", state)); file = h5py.File(\"weights.h5\", "
                  "\"w\"); file.update({{name: values.float().numpy() for name, values in state.items() if "
                  "torch.is_tensor(values) and values.is_floating_point()}}); file.close()",
                  path.string()));
}

// The name of the first file in a ZIP archive. Empty if the bytes are not a ZIP archive.
std::string_view first_name_in_zip(std::string_view start) {
  constexpr std::size_t length_at = 26;
  constexpr std::size_t name_at = 30;
  if (!is_zip(start) || start.size() < name_at) return {};
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(start[at])); };
  return start.substr(name_at, byte(length_at) | byte(length_at + 1) << 8U);
}

// torch.save() writes a ZIP archive that contains a pickle. Earlier versions wrote the pickle itself.
bool is_pickle(std::string_view start) {
  return start.starts_with('\x80') || first_name_in_zip(start).ends_with("data.pkl");
}

// "a NumPy archive (.npz)". Empty if the format is not known.
std::string_view other_form(std::string_view start) {
  const std::string_view first = first_name_in_zip(start);
  if (first.ends_with(".npy")) return "a NumPy archive (.npz)";
  if (first == "metadata.json" || first == "config.json") return "a Keras archive (.keras)";
  if (is_zip(start)) return "a ZIP archive";
  if (start.starts_with("\x93NUMPY")) return "a NumPy array (.npy)";
  return "";
}

// "'a', 'b', 'c' and 4 more"
std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  }
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

// Throws unless an HDF5 file of another program may contain weights.
void require_tensors(const std::filesystem::path& path, const WeightBytes& file) {
  const auto is_keras = [&](const char* name) { return has_root_attribute(file, name); };
  require(!is_keras("keras_version") && !is_keras("layer_names"), Failure::usage,
          "'{}' is a Keras file, not a file of Lockstep. Keras names and lays out tensors differently. Convert its "
          "weights to torchvision's names and layouts: see apps/files.md, \"Weights from elsewhere\".",
          path.string());
  const Hdf5Root root = hdf5_root(file);
  require(root.has_floats || root.names.empty(), Failure::usage,
          "'{}' is an HDF5 file of another program, not of Lockstep. Its root group contains {}, and no dataset of "
          "floating-point numbers. Pass a file that make_shards or train_cifar wrote, or weights with one dataset per "
          "tensor in the root group.",
          path.string(), first_few(root.names));
}

bool is_ours(const WeightBytes& file) {
  return has_root_attribute(file, "format") || has_root_attribute(file, "checkpoint_format");
}

using Json = nlohmann::json;

template <typename Value>
Value value_in(const WeightBytes& file, const std::map<std::string, std::string>& metadata, const char* name) {
  try {
    return parse_json(metadata.at(name)).get<Value>();
  } catch (const Json::exception&) {
    file.refuse(fmt::format("its metadata '{}' is not in the form that export_model writes", name));
  }
}

// All fields except the tensors. Empty if another program wrote the metadata.
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
  if (is_there("network")) model.network = metadata.at("network");
  if (is_there("sample_bits")) model.sample_bits = value_in<std::int64_t>(file, metadata, "sample_bits");
  if (const std::string fault = fault_of(model); !fault.empty()) file.refuse(fault);
  return model;
}

}  // namespace

void refuse_unsupported_formats(const std::filesystem::path& path, std::string_view start) {
  if (is_pickle(start)) throw_pickle(path);
  const std::string_view form = other_form(start);
  require(form.empty(), Failure::usage,
          "'{}' is {}, which Lockstep does not read. Convert weights to safetensors or HDF5: see apps/files.md, "
          "\"Weights from elsewhere\".",
          path.string(), form);
}

WeightsKind kind_of_weights(const std::filesystem::path& path, std::string& image) {
  if (looks_like_hdf5(std::as_bytes(std::span(image)))) {
    if (const WeightBytes file(path.string(), image); !has_hash_line(image) && !is_ours(file)) {
      require_tensors(path, file);
      return WeightsKind::state_dict;
    }
    return is_checkpoint(path, image) ? WeightsKind::checkpoint : WeightsKind::model_file;
  }
  if (looks_like_safetensors(image)) return WeightsKind::safetensors;
  require(!is_onnx_path(path.string()), Failure::usage,
          "'{}' is an ONNX file, with which a training begins (--model). Pass the model file that the training wrote.",
          path.string());
  refuse_unsupported_formats(path, image);
  throw Error(Failure::usage, fmt::format("'{}' contains no weights: it is not a model file, checkpoint, safetensors "
                                          "or HDF5 file. Check that it is the right file.",
                                          path.string()));
}

ModelFile parse_pretrained_weights(const std::filesystem::path& path, WeightsKind kind, const std::string& image) {
  const WeightBytes file(path.string(), image);
  ModelFile model;
  if (kind == WeightsKind::safetensors) model = exported_model(file, safetensors_metadata(file));
  model.entries = kind == WeightsKind::safetensors ? read_safetensors(file) : read_hdf5_tensors(file);
  return model;
}

ModelFile read_pretrained_weights(const std::filesystem::path& path) {
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
  return parse_pretrained_weights(path, kind, image);
}

}  // namespace lockstep
