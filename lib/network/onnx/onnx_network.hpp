// A network from an ONNX file, as PyTorch exports it: https://onnx.ai. Which operators it may have: apps/files.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
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
  // A parameter whose name is not PyTorch's, as of a norm that the exporter merged into a convolution. Empty: none.
  std::string foreign_name;
  // An array that is multiplied or added, and so is not trained, although it may be a parameter. Empty: none.
  std::string constant_name;
};
// What to say of both to a user. `path` is for messages.
std::vector<std::string> warnings_about(const std::string& path, const OnnxNetwork& network);

// `images`: their height and width; none: those in the file. Throws Error(usage) that names the node if the network
// cannot be computed, and Error(bad_data) if the file is damaged.
OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::optional<ValueShape> images);

// Whether a model's name is the path of an ONNX file: it ends with .onnx.
bool is_onnx_path(const std::string& model);

}  // namespace lockstep
