// Exports a trained model for other programs.
//
//   export_model runs/cifar10/model.h5 --onnx model.onnx
//   export_model runs/cifar10/model.h5 --safetensors model.safetensors
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/json_text.hpp"
#include "device/cpu/cpu_device.hpp"
#include "export/onnx_model.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/import/safetensors.hpp"
#include "files/result_file.hpp"
#include "launch/result_options.hpp"
#include "launch/run.hpp"
#include "step/model.hpp"
#include "train/pretrained/run_model.hpp"

using namespace lockstep;

namespace {

bool begins_as_onnx(std::string_view start) {
  // The first field of a ModelProto is the format's version, the second the producer.
  return start.size() > 2 && start[0] == '\x08' && start[2] == '\x12';
}

bool begins_as_safetensors(std::string_view start) {
  constexpr std::size_t length_bytes = 8;  // length of the JSON header
  return start.size() > length_bytes && start[length_bytes] == '{';
}

void require_place_for_onnx(const std::filesystem::path& file) {
  static constexpr std::array<std::string_view, 1> endings = {".onnx"};
  require_place_for_result(file, {"ONNX model", begins_as_onnx}, "--onnx", endings);
}

void require_place_for_safetensors(const std::filesystem::path& file) {
  static constexpr std::array<std::string_view, 1> endings = {".safetensors"};
  require_place_for_result(file, {"safetensors file", begins_as_safetensors}, "--safetensors", endings);
}

struct ExportOptions {
  std::filesystem::path model;
  std::filesystem::path onnx;
  std::filesystem::path safetensors;

  void declare(CLI::App& app) {
    app.description("Exports a trained model to ONNX or safetensors.");
    app.add_option("MODEL", model, "Model file, checkpoint, or output folder of a training (its best model)")
        ->required()
        ->type_name("FILE");
    add_result(app, "--onnx", onnx, require_place_for_onnx,
               "Write the network with its weights to this file. Input: pixels / 255, any batch size; output: logits");
    add_result(app, "--safetensors", safetensors, require_place_for_safetensors,
               "Write the weights to this file, under torchvision's names");
    app.footer(
        "Examples:\n  export_model runs/r20 --onnx r20.onnx\n"
        "  export_model runs/r20/model.h5 --safetensors r20.safetensors");
  }
};

std::string onnx_image(const ModelFile& file) {
  const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
  Model model(*device, model_options(file));
  // Checks that these are the model's weights.
  model.store.allocate(device->make_persistent(model.store.gradient_buffer_count(), DType::f32));
  model.store.assign(file.entries);
  return onnx_model(model_graph(model.options), file);
}

std::string safetensors_image(const ModelFile& file) {
  std::map<std::string, std::string> notes = {
      {"format", "pt"},
      {"model", file.model},
      {"classes", json_text(file.classes)},
      {"sample_shape", json_text({file.shape.height, file.shape.width, file.shape.channels})},
      {"mean", json_text(file.mean)},
      {"deviation", json_text(file.deviation)}};
  if (!file.network.empty()) notes["network"] = file.network;
  if (file.sample_bits) notes["sample_bits"] = json_text(*file.sample_bits);
  if (file.shorter_side) notes["shorter_side"] = json_text(*file.shorter_side);
  return lockstep::safetensors_image(file.entries, notes);
}

}  // namespace

int main(int argc, char** argv) {
  return run<ExportOptions>(argc, argv, [](Session& session, const ExportOptions& options) {
    require(!options.onnx.empty() || !options.safetensors.empty(), Failure::usage,
            "nothing to write: neither --onnx nor --safetensors is set. See --help.");
    if (session.world.rank() != 0) return;
    const RunModel named = named_model(options.model);
    if (!named.description.empty()) log::info("model: {}", named.description);
    const ModelFile file = read_weights(named.file);
    std::string message;
    const auto write = [&message](const std::filesystem::path& path, const std::string& image) {
      write_file_atomically(path, image);
      message += fmt::format("{}'{}' written ({} bytes)", message.empty() ? "" : "\n", path.string(), image.size());
    };
    if (!options.onnx.empty()) write(options.onnx, onnx_image(file));
    if (!options.safetensors.empty()) write(options.safetensors, safetensors_image(file));
    log::plain(message);
  });
}
