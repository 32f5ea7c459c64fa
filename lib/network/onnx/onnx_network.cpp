#include "network/onnx/onnx_network.hpp"

#include <fmt/format.h>

#include "network/onnx/onnx_converter.hpp"

namespace lockstep {

OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::optional<ValueShape> images) {
  const OnnxFile file(path);
  return OnnxConverter(file, images).convert();
}

std::vector<std::string> warnings_about(const std::string& path, const OnnxNetwork& network) {
  std::vector<std::string> warnings;
  if (!network.foreign_name.empty()) {
    warnings.push_back(fmt::format(
        "'{}' has a parameter '{}', which is no name of PyTorch's: if batch norms were merged into convolutions, "
        "export model.train() with optimize=False (dynamo=True), or with training=TrainingMode.PRESERVE and "
        "do_constant_folding=False.",
        short_text(path), short_text(network.foreign_name)));
  }
  if (!network.constant_name.empty()) {
    warnings.push_back(fmt::format("'{}' in '{}' is multiplied or added, and is not trained: it remains as it is.",
                                   short_text(network.constant_name), short_text(path)));
  }
  return warnings;
}

bool is_onnx_path(const std::string& model) { return model.ends_with(".onnx"); }

}  // namespace lockstep
