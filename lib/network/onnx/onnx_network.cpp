#include "network/onnx/onnx_network.hpp"

#include <fmt/format.h>

#include "network/onnx/onnx_converter.hpp"

namespace lockstep {

OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::optional<ValueShape> images) {
  const OnnxFile file(path);
  return OnnxConverter(file, images).convert();
}

std::string foreign_names_warning(const std::string& path, const OnnxNetwork& network) {
  return fmt::format(
      "'{}' has a parameter '{}', which is no name of PyTorch's: if batch norms were merged into convolutions, export "
      "model.train() with optimize=False (dynamo=True), or with training=TrainingMode.PRESERVE and "
      "do_constant_folding=False.",
      short_text(path), short_text(network.foreign_name));
}

bool is_onnx_path(const std::string& model) { return model.ends_with(".onnx"); }

}  // namespace lockstep
