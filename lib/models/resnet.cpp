#include "models/resnet.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "network/build.hpp"

namespace lockstep {
namespace {

using namespace build;

// Largest side, in pixels, for the small-image stem. CIFAR has 32 pixels, Tiny ImageNet 64.
constexpr std::int64_t small_picture = 64;

// FFCV's threshold, which excludes the stem.
constexpr std::int64_t least_blurred_channels = 16;

// Convolution, norm and ReLU in a block's main branch. The last one of a block adds the shortcut.
struct Unit {
  std::int64_t kernel;
  std::int64_t widths = 1;                    // output channels, as a multiple of the stage's width
  enum Step { plain, strided } step = plain;  // `strided`: has the stride of a stage's first block
};
using Block = std::vector<Unit>;

const Block& basic_block() {
  static const Block block = {{3, 1, Unit::strided}, {3}};
  return block;
}
// The 3x3 convolution has the stride, as in torchvision.
const Block& bottleneck_block() {
  static const Block block = {{1}, {3, 1, Unit::strided}, {1, 4}};
  return block;
}

enum class Shortcut { projection, subsample };  // for blocks that change the shape

struct Stage {
  std::int64_t width;
  int blocks;
};

struct Plan {
  const Block& block;
  Shortcut shortcut;
  std::vector<Stage> stages;
};

// The graph of one network, with torchvision's names.
class ResidualNetwork {
 public:
  ResidualNetwork(const ModelOptions& options, Plan plan)
      : options_(options),
        plan_(std::move(plan)),
        graph_({options.sample.height, options.sample.width, options.sample.channels}) {}

  NetworkGraph graph() {
    Value x = stem(input(graph_));
    for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage) {
      for (int block = 0; block < plan_.stages[stage].blocks; ++block) {
        x = residual_block(x, fmt::format("layer{}.{}", stage + 1, block), scaled(plan_.stages[stage].width),
                           stage > 0 && block == 0 ? 2 : 1);
      }
    }
    linear(global_mean_pool(x), "fc", options_.classes);
    return std::move(graph_);
  }

 private:
  std::int64_t scaled(std::int64_t width) const { return std::max<std::int64_t>(1, width / options_.width_divisor); }

  Value stem(Value images) const {
    const std::int64_t width = scaled(plan_.stages.front().width);
    const ValueShape& size = images.shape();
    if (plan_.shortcut == Shortcut::subsample || std::max(size.height, size.width) <= small_picture) {
      return relu(batch_norm(conv(images, "conv1", {.out = width, .kernel = 3, .padding = 1}), "bn1"));
    }
    const Value x = conv(images, "conv1", {.out = width, .kernel = 7, .stride = 2, .padding = 3});
    return max_pool(relu(batch_norm(x, "bn1")), {.kernel = 3, .stride = 2, .padding = 1});
  }

  // The shortcut comes first, because backward goes through the main branch first.
  Value residual_block(Value x, const std::string& name, std::int64_t width, std::int64_t stride) const {
    const Value skipped = shortcut(x, name, width * plan_.block.back().widths, stride);
    const std::size_t last = plan_.block.size() - 1;
    for (std::size_t i = 0; i <= last; ++i) {
      const Unit& unit = plan_.block[i];
      const ConvOptions options{.out = width * unit.widths,
                                .kernel = unit.kernel,
                                .stride = unit.step == Unit::strided ? stride : 1,
                                .padding = unit.kernel / 2};
      const bool is_nothing_yet = i == last && options_.residual_init == ResidualInit::zero_gamma;
      x = batch_norm(blurred_conv(x, fmt::format("{}.conv{}", name, i + 1), options),
                     fmt::format("{}.bn{}", name, i + 1), {.initial_scale = is_nothing_yet ? 0.0F : 1.0F});
      x = relu(i == last ? add(x, skipped) : x);
    }
    return x;
  }

  Value shortcut(Value x, const std::string& block, std::int64_t out, std::int64_t stride) const {
    if (stride == 1 && x.shape().channels == out) return x;
    if (plan_.shortcut == Shortcut::subsample) return subsample(x, stride, out);
    const ConvOptions options{.out = out, .kernel = 1, .stride = stride};
    return batch_norm(blurred_conv(x, block + ".downsample.0", options), block + ".downsample.1");
  }

  // With a blur before it, if the model has one. Before a 1 x 1 convolution the blur itself has the stride, so it
  // computes only the pixels that are read.
  Value blurred_conv(Value x, const std::string& name, ConvOptions options) const {
    if (is_blurred(options_.name) && options.stride != 1 && x.shape().channels >= least_blurred_channels) {
      x = blur(x, options.kernel == 1 ? std::exchange(options.stride, 1).height : 1);
    }
    return conv(x, name, options);
  }

  const ModelOptions& options_;
  Plan plan_;
  NetworkGraph graph_;
};

// The stages of torchvision's networks.
std::vector<Stage> stages_of(const std::array<int, 4>& blocks) {
  return {{64, blocks[0]}, {128, blocks[1]}, {256, blocks[2]}, {512, blocks[3]}};
}

}  // namespace

NetworkGraph resnet20_graph(const ModelOptions& options) {
  return ResidualNetwork(options, {basic_block(), Shortcut::subsample, {{16, 3}, {32, 3}, {64, 3}}}).graph();
}

NetworkGraph resnet18_graph(const ModelOptions& options) {
  return ResidualNetwork(options, {basic_block(), Shortcut::projection, stages_of({2, 2, 2, 2})}).graph();
}

NetworkGraph resnet34_graph(const ModelOptions& options) {
  return ResidualNetwork(options, {basic_block(), Shortcut::projection, stages_of({3, 4, 6, 3})}).graph();
}

NetworkGraph resnet50_graph(const ModelOptions& options) {
  return ResidualNetwork(options, {bottleneck_block(), Shortcut::projection, stages_of({3, 4, 6, 3})}).graph();
}

NetworkGraph resnet101_graph(const ModelOptions& options) {
  return ResidualNetwork(options, {bottleneck_block(), Shortcut::projection, stages_of({3, 4, 23, 3})}).graph();
}

}  // namespace lockstep
