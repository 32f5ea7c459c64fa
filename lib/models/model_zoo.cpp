#include "models/model_zoo.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.hpp"
#include "models/plain_nets.hpp"
#include "models/resnet.hpp"

namespace lockstep {
namespace {

enum class ModelName { convnet, lenet, resnet18, resnet20, resnet50 };

constexpr std::array<std::string_view, 5> names = {"convnet", "lenet", "resnet18", "resnet20", "resnet50"};

ModelName parse(const std::string& name) {
  const auto found = std::ranges::find(names, name);
  require(found != names.end(), Failure::usage, "unknown model '{}' (--model). Known: {}.", name, known_models());
  return static_cast<ModelName>(found - names.begin());
}

void require_size(const ModelOptions& options, std::int64_t smallest) {
  const SampleShape& sample = options.sample;
  require(
      sample.height >= smallest && sample.width >= smallest, Failure::usage,
      "model '{}' cannot take samples of {} x {} pixels (it halves them until nothing is left). It needs at least {} "
      "x {}: choose another --model or --data.",
      options.name, sample.height, sample.width, smallest, smallest);
}

}  // namespace

std::string known_models() { return fmt::format("{}", fmt::join(names, ", ")); }

std::unique_ptr<Layer> make_model(const ModelOptions& options, const LayerContext& context) {
  const ModelName name = parse(options.name);
  require(options.classes >= 1, Failure::usage, "model '{}' cannot tell {} classes apart. Is --data a data set?",
          options.name, options.classes);
  // More would be features, which a device lays out otherwise than pictures.
  require(options.sample.channels >= 1 && options.sample.channels <= 3, Failure::usage,
          "model '{}' cannot take samples with {} channels. It takes 1 to 3 (grey or colour): choose another --data.",
          options.name, options.sample.channels);
  switch (name) {
    case ModelName::convnet:
      require_size(options, 4);
      return make_convnet(options, context);
    case ModelName::lenet:
      require_size(options, 16);
      return make_lenet(options, context);
    case ModelName::resnet18:
      require_size(options, 1);
      return make_resnet18(options, context);
    case ModelName::resnet20:
      require_size(options, 1);
      return make_resnet20(options, context);
    case ModelName::resnet50:
      require_size(options, 1);
      return make_resnet50(options, context);
  }
  return nullptr;
}

}  // namespace lockstep
