#include "models/model_zoo.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "base/text/nearest_name.hpp"
#include "models/plain_nets.hpp"
#include "models/resnet.hpp"
#include "network/fusion.hpp"
#include "network/network_text.hpp"
#include "network/onnx/onnx_network.hpp"
#include "nn/fused_network.hpp"

namespace lockstep {
namespace {

enum class Kind : std::uint8_t { plain, residual };
// Sample sizes that a model supports once it is built.
enum class Sizes : std::uint8_t { its_own, any };

struct Model {
  std::string_view name;
  Sizes sizes;
  std::int64_t smallest_side;  // in pixels
  Kind kind;
  NetworkGraph (*graph)(const ModelOptions& options);
};

constexpr std::array models = {Model{"airbench", Sizes::its_own, 25, Kind::plain, airbench_graph},
                               Model{"airbench95", Sizes::its_own, 25, Kind::plain, airbench95_graph},
                               Model{"convnet", Sizes::its_own, 4, Kind::plain, convnet_graph},
                               Model{"lenet", Sizes::its_own, 16, Kind::plain, lenet_graph},
                               Model{"resnet18", Sizes::any, 1, Kind::residual, resnet18_graph},
                               Model{"resnet20", Sizes::any, 1, Kind::residual, resnet20_graph},
                               Model{"resnet34", Sizes::any, 1, Kind::residual, resnet34_graph},
                               Model{"resnet50", Sizes::any, 1, Kind::residual, resnet50_graph},
                               Model{"resnet101", Sizes::any, 1, Kind::residual, resnet101_graph}};

const Model& find_model(const std::string& name) {
  const std::string plain = is_blurred(name) ? name.substr(0, name.size() - blur_ending.size()) : name;
  const auto* const found = std::ranges::find(models, plain, &Model::name);
  if (found == models.end()) {
    throw Error(Failure::usage, fmt::format("unknown model '{}' (--model), and no ONNX file (NAME.onnx). {}Known: {}.",
                                            name, did_you_mean(plain, model_names()), known_models()));
  }
  require(found->kind == Kind::residual || !is_blurred(name), Failure::usage,
          "model '{}' has no strided convolution that could be blurred (--blur-pool). Leave out --blur-pool.", plain);
  return *found;
}

void require_size(const ModelOptions& options, std::int64_t smallest) {
  const SampleShape& sample = options.sample;
  require(sample.height >= smallest && sample.width >= smallest, Failure::usage,
          "model '{}' cannot take samples of {} x {} pixels, because it halves them until nothing is left. It needs at "
          "least {} x {}. Choose another --model or --data.",
          options.name, sample.height, sample.width, smallest, smallest);
}

// The network of a file, for these images and classes.
NetworkGraph fitted(const NetworkGraph& graph, const ModelOptions& options) {
  require_images_for_convolutions(graph);
  const std::int64_t channels = graph.node(0).shape.channels;
  require(channels == options.sample.channels, Failure::usage,
          "model '{}' takes images with {}, but the samples have {}. Choose another --model or --data.", options.name,
          counted(channels, "channel"), options.sample.channels);
  const std::int64_t classes = graph.nodes().back().shape.channels;
  require(classes == options.classes, Failure::usage,
          "model '{}' has {}, but the data have {}. To start with a new last layer, add --new-head.", options.name,
          counted(classes, "class", "classes"), options.classes);
  return graph.for_input({options.sample.height, options.sample.width, channels});
}

// A graph like this one, whose convolutions begin as FilterInit::identity states.
NetworkGraph with_identities(const NetworkGraph& graph) {
  NetworkGraph changed(graph.node(0).shape);
  for (const GraphNode& node : graph.nodes() | std::views::drop(1)) {
    Operation operation = node.operation;
    if (auto* const one = std::get_if<op::Convolution>(&operation)) {
      const Size2d& kernel = one->conv.kernel;
      const bool has_center = kernel.height % 2 == 1 && kernel.width % 2 == 1 && kernel.area() > 1;
      one->begins_with_identity = has_center && one->conv.out_channels >= one->conv.in_channels;
    }
    changed.add(node.name, operation, node.inputs);
  }
  return changed;
}

std::string with_sizes(Sizes sizes) {
  const auto takes = [sizes](const Model& model) { return model.sizes == sizes; };
  return fmt::format("{}", fmt::join(models | std::views::filter(takes) | std::views::transform(&Model::name), ", "));
}

}  // namespace

std::string with_blur(const std::string& name) { return is_blurred(name) ? name : name + std::string(blur_ending); }

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : models) names.emplace_back(model.name);
  return names;
}

std::string known_models() { return fmt::format("{}", fmt::join(model_names(), ", ")); }

void require_model(const std::string& name, ResidualInit start) {
  if (is_onnx_path(name)) {
    require(start == ResidualInit::standard, Failure::usage,
            "--zero-init-gamma is for models by name, not for the network in '{}'. Leave out --zero-init-gamma.", name);
    return;
  }
  require(!is_blurred(name) || !is_onnx_path(name.substr(0, name.size() - blur_ending.size())), Failure::usage,
          "--blur-pool is for models by name, not for the network in an ONNX file. Leave out --blur-pool.");
  const Model& model = find_model(name);
  require(start == ResidualInit::standard || model.kind == Kind::residual, Failure::usage,
          "model '{}' has no residual blocks, whose last norms --zero-init-gamma would initialize to a scale of 0. "
          "Leave out --zero-init-gamma.",
          name);
}

void require_takes(const ModelOptions& options, std::int64_t height, std::int64_t width) {
  const SampleShape& sample = options.sample;
  if (!options.network.empty()) {
    network_from_text(options.network).for_input({height, width, sample.channels});
    return;
  }
  const bool is_its_own = height == sample.height && width == sample.width;
  require(is_its_own || find_model(options.name).sizes == Sizes::any, Failure::usage,
          "model '{}' takes only images of {} x {} pixels, not {} x {}, because it has a weight for each remaining "
          "pixel. Use one of {}, or leave out --image-size-ramp and --test-image-size.",
          options.name, sample.height, sample.width, height, width, with_sizes(Sizes::any));
}

NetworkGraph model_graph(const ModelOptions& options) {
  if (!options.network.empty()) return fitted(network_from_text(options.network), options);
  if (is_onnx_path(options.name)) {
    const SampleShape& sample = options.sample;
    return fitted(read_onnx_network(options.name, ValueShape{sample.height, sample.width, 0}).graph, options);
  }
  const Model& model = find_model(options.name);
  require(options.classes >= 1, Failure::usage,
          "model '{}' cannot classify {} classes. Check that --data is a data set.", options.name, options.classes);
  // More channels would be features, which a device lays out differently from images.
  require(options.sample.channels >= 1 && options.sample.channels <= 3, Failure::usage,
          "model '{}' cannot take samples with {} channels. It takes 1 to 3 (gray or color). Choose another --data.",
          options.name, options.sample.channels);
  require_size(options, model.smallest_side);
  require_model(options.name, options.residual_init);
  const NetworkGraph graph = model.graph(options);
  return options.filter_init == FilterInit::identity ? with_identities(graph) : graph;
}

std::unique_ptr<Network> make_model(const ModelOptions& options, const LayerContext& context) {
  return std::make_unique<FusedNetwork>(model_graph(options), context);
}

}  // namespace lockstep
