// A network from an ONNX file, as PyTorch exports it: https://onnx.ai. Which operators it may have: apps/files.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "network/graph.hpp"

namespace lockstep {

// Values of a parameter or a statistic.
struct NamedArray {
  std::string name;                // PyTorch's name: "layer1.0.conv1.weight"
  std::vector<std::int64_t> dims;  // PyTorch's shape: [out, in, rows, columns], [out, in] or [c]
  std::vector<float> values;       // row-major
};

struct OnnxNetwork {
  NetworkGraph graph;
  std::vector<NamedArray> arrays;  // in the order of the graph
  // Of a normalization at the input, which is not part of the graph: (x - mean) / deviation by channel. Empty without.
  std::vector<float> mean;
  std::vector<float> deviation;
  std::vector<std::string> warnings;  // for the user: where the training may not be what the file's author means
};
// How export_model names arrays that are multiplied or added.
inline constexpr std::string_view exported_constants = "constants_";

// `images`: their height and width; none: those in the file. Throws Error(usage) that names the node if the network
// cannot be computed, and Error(bad_data) if the file is damaged.
OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::optional<ValueShape> images);

// Whether a model's name is the path of an ONNX file: it ends with .onnx.
bool is_onnx_path(const std::string& model);

}  // namespace lockstep
