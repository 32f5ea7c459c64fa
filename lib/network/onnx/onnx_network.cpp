#include "network/onnx/onnx_network.hpp"

#include "network/onnx/onnx_converter.hpp"

namespace lockstep {

OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::optional<ValueShape> images) {
  const OnnxFile file(path);
  return OnnxConverter(file, images).convert();
}

bool is_onnx_path(const std::string& model) { return model.ends_with(".onnx"); }

}  // namespace lockstep
