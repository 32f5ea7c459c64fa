#include "train/pretrained/given_network.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "network/network_text.hpp"
#include "network/onnx/onnx_network.hpp"
#include "picture/picture.hpp"

namespace lockstep {
namespace {

OnnxNetwork network_in_file(const Recipe& recipe, const ModelOptions& options) {
  OnnxNetwork network = read_onnx_network(recipe.model, ValueShape{options.sample.height, options.sample.width, 0});
  if (recipe.init.head == Head::fresh) network.graph = network.graph.with_outputs(options.classes);
  return network;
}

// Height and width of the images for which the file was exported. Nothing if it leaves them open.
std::optional<PictureSize> exported_size(const std::filesystem::path& file) try {
  const NetworkGraph graph = read_onnx_network(file, {}).graph;
  const ValueShape& images = graph.node(0).shape;
  return PictureSize{images.height, images.width};
} catch (const Error&) {
  return std::nullopt;
}

bool is_close(const std::vector<float>& given, const std::vector<float>& own) {
  constexpr float rounding = 1e-3F;
  return std::ranges::equal(given, own, [](float a, float b) { return std::abs(a - b) <= rounding; });
}

}  // namespace

GivenNetwork given_network(const Recipe& recipe, const ModelOptions& options, const Manifest& data,
                           const ModelFile* earlier) {
  if (earlier != nullptr && is_absent(recipe.model)) return {earlier->network, {}};
  std::optional<OnnxNetwork> read;
  try {
    read = network_in_file(recipe, options);
  } catch (const Error& error) {
    if (earlier == nullptr || error.failure() != Failure::bad_data) throw;
    return {earlier->network, {fmt::format("{} The checkpoint's network is used instead.", error.what())}};
  }
  const OnnxNetwork& network = *read;
  GivenNetwork given{network_text(network.graph), {}};
  if (!network.mean.empty() && !(is_close(network.mean, data.mean) && is_close(network.deviation, data.deviation))) {
    given.warnings.push_back(fmt::format(
        "'{}' normalizes images by another mean and deviation than those of the data, which are used instead.",
        recipe.model));
  }
  const PictureSize used{options.sample.height, options.sample.width};
  const PictureSize exported = earlier == nullptr ? exported_size(recipe.model).value_or(used) : used;
  if (exported != used) {
    given.warnings.push_back(fmt::format(
        "'{}' was exported for images of {} x {} pixels, but is trained for {} x {}. To choose the size, set "
        "--image-size.",
        recipe.model, exported.height, exported.width, used.height, used.width));
  }
  std::ranges::copy(network.warnings, std::back_inserter(given.warnings));
  require(earlier == nullptr || given.text == earlier->network, Failure::usage,
          "the network in '{}' is not the one with which the checkpoint was trained. Restore the file and the options "
          "(--new-head), or start a new training with another --output.",
          recipe.model);
  return given;
}

std::vector<ParameterStore::Entry> given_weights(const Recipe& recipe, const ModelOptions& model) {
  OnnxNetwork network = network_in_file(recipe, model);
  require(network_text(network.graph) == model.network, Failure::usage,
          "'{}' has changed while the training started. Call the program again.", recipe.model);
  std::vector<ParameterStore::Entry> entries;
  for (NamedArray& array : network.arrays) {
    entries.push_back({std::move(array.name), std::move(array.dims), std::move(array.values)});
  }
  return entries;
}

}  // namespace lockstep
