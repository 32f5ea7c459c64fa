#include "models/resnet.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "nn/conv_norm_act.hpp"
#include "nn/linear.hpp"
#include "nn/pooling.hpp"
#include "nn/residual.hpp"
#include "nn/sequential.hpp"

namespace lockstep {
namespace {

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

class Builder {
 public:
  Builder(const ModelOptions& options, const LayerContext& context, Plan plan)
      : options_(options), context_(context), plan_(std::move(plan)), net_(std::make_unique<Sequential>()) {}

  std::unique_ptr<Layer> build() {
    add_stem(scaled(plan_.stages.front().width));
    for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage) add_stage(stage);
    net_->add(std::make_unique<GlobalMeanPool>(context_));
    net_->add(std::make_unique<Linear>(context_, "fc", channels_, options_.classes));
    return std::move(net_);
  }

 private:
  std::int64_t scaled(std::int64_t width) const { return std::max<std::int64_t>(1, width / options_.width_divisor); }

  std::unique_ptr<ConvNormAct> unit(const std::string& conv_name, const std::string& norm_name, const Conv2d& conv,
                                    Activation activation, float initial_scale = 1.0F) const {
    return std::make_unique<ConvNormAct>(context_, conv_name, norm_name, conv, ConvolutionOptions{}, activation,
                                         initial_scale);
  }

  void add_stem(std::int64_t width) {
    const SampleShape& sample = options_.sample;
    if (plan_.shortcut == Shortcut::subsample || std::max(sample.height, sample.width) <= small_picture) {
      net_->add(unit("conv1", "bn1", {sample.channels, width, 3, 1, 1}, Activation::relu));
    } else {
      net_->add(unit("conv1", "bn1", {sample.channels, width, 7, 2, 3}, Activation::relu));
      net_->add(std::make_unique<MaxPool>(context_, Pool2d{.kernel = 3, .stride = 2, .padding = 1}));
    }
    channels_ = width;
  }

  void add_stage(std::size_t stage) {
    const std::int64_t width = scaled(plan_.stages[stage].width);
    for (int i = 0; i < plan_.stages[stage].blocks; ++i) {
      const std::string name = fmt::format("layer{}.{}", stage + 1, i);
      add_block(name, width, stage > 0 && i == 0 ? 2 : 1);
    }
  }

  void add_block(const std::string& name, std::int64_t width, std::int64_t stride) {
    auto shortcut = make_shortcut(name, width * plan_.block.back().widths, stride);
    auto main = std::make_unique<Sequential>();
    std::unique_ptr<ConvNormAct> last;
    for (std::size_t i = 0; i < plan_.block.size(); ++i) {
      const Unit& part = plan_.block[i];
      const Conv2d strided{.in_channels = channels_,
                           .out_channels = width * part.widths,
                           .kernel = part.kernel,
                           .stride = part.step == Unit::strided ? stride : 1,
                           .padding = part.kernel / 2};
      if (last) main->add(std::move(last));
      const Conv2d conv = after_blur(strided, *main);
      const bool is_nothing_yet = options_.residual_init == ResidualInit::zero_gamma && i + 1 == plan_.block.size();
      last = unit(fmt::format("{}.conv{}", name, i + 1), fmt::format("{}.bn{}", name, i + 1), conv, Activation::relu,
                  is_nothing_yet ? 0.0F : 1.0F);
      channels_ = conv.out_channels;
    }
    net_->add(std::make_unique<Residual>(context_, std::move(shortcut), std::move(main), std::move(last)));
  }

  std::unique_ptr<Layer> make_shortcut(const std::string& block, std::int64_t out, std::int64_t stride) const {
    if (stride == 1 && channels_ == out) return nullptr;
    if (plan_.shortcut == Shortcut::subsample) return std::make_unique<Subsample>(context_, stride, out);
    auto shortcut = std::make_unique<Sequential>();
    const Conv2d conv = after_blur({channels_, out, 1, stride, 0}, *shortcut);
    shortcut->add(unit(block + ".downsample.0", block + ".downsample.1", conv, Activation::none));
    return shortcut;
  }

  // Adds the blur before `conv` to `chain` if the model has one, and returns the convolution of its result. Before a 1
  // x 1 convolution the blur itself has the stride, so it computes only the pixels that are read.
  Conv2d after_blur(Conv2d conv, Sequential& chain) const {
    if (!is_blurred(options_.name) || conv.stride == 1 || conv.in_channels < least_blurred_channels) return conv;
    const std::int64_t stride = conv.kernel == 1 ? std::exchange(conv.stride, 1) : 1;
    chain.add(std::make_unique<Blur>(context_, stride));
    return conv;
  }

  const ModelOptions& options_;
  const LayerContext& context_;
  Plan plan_;
  std::unique_ptr<Sequential> net_;
  std::int64_t channels_ = 0;  // output channels of the last layer
};

// The stages of torchvision's networks.
std::vector<Stage> stages_of(const std::array<int, 4>& blocks) {
  return {{64, blocks[0]}, {128, blocks[1]}, {256, blocks[2]}, {512, blocks[3]}};
}

}  // namespace

std::unique_ptr<Layer> make_resnet20(const ModelOptions& options, const LayerContext& context) {
  return Builder(options, context, {basic_block(), Shortcut::subsample, {{16, 3}, {32, 3}, {64, 3}}}).build();
}

std::unique_ptr<Layer> make_resnet18(const ModelOptions& options, const LayerContext& context) {
  return Builder(options, context, {basic_block(), Shortcut::projection, stages_of({2, 2, 2, 2})}).build();
}

std::unique_ptr<Layer> make_resnet34(const ModelOptions& options, const LayerContext& context) {
  return Builder(options, context, {basic_block(), Shortcut::projection, stages_of({3, 4, 6, 3})}).build();
}

std::unique_ptr<Layer> make_resnet50(const ModelOptions& options, const LayerContext& context) {
  return Builder(options, context, {bottleneck_block(), Shortcut::projection, stages_of({3, 4, 6, 3})}).build();
}

std::unique_ptr<Layer> make_resnet101(const ModelOptions& options, const LayerContext& context) {
  return Builder(options, context, {bottleneck_block(), Shortcut::projection, stages_of({3, 4, 23, 3})}).build();
}

}  // namespace lockstep
