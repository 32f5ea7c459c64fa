// The models by name: one table, no registry.
//
//   lenet     the LeNet-5 variant of PyTorch's CIFAR tutorial: two convolutions, three linear layers
//   convnet   the MNIST net of PyTorch's distributed tutorial: two convolutions with batch norm, one linear layer
//   resnet20  He et al. 2015, section 4.2: for small pictures, parameter-free shortcuts (option A)
//   resnet18, resnet34, resnet50, resnet101
//             torchvision's; up to 64 pixels with a stem for small pictures (3 x 3, no pooling)
//   resnet18-blur, ...
//             each residual network also with maps that are blurred before strided convolutions of at least 16 input
//             channels, the same weights under the same names (Zhang 2019; placed as FFCV's train_imagenet.py does)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/layer.hpp"
#include "nn/sample_shape.hpp"

namespace lockstep {

// What a residual block does at first: its whole arithmetic, or nothing, its last norm having a scale of 0 (Goyal et
// al. 2017, section 5.1).
enum class BlockStart : std::uint8_t { whole, identity };

struct ModelOptions {
  std::string name;
  SampleShape sample;
  std::int64_t classes = 0;
  std::int64_t width_divisor = 1;  // of the residual networks' channels: small copies for tests
  BlockStart block_start = BlockStart::whole;
};

// Registers the model's parameters with `context.store`. The layer maps images [n, height, width, channels] to logits
// [n, classes], plain fp32. Throws Error(usage) for an unknown name or samples that the model cannot take.
std::unique_ptr<Layer> make_model(const ModelOptions& options, const LayerContext& context);

// What make_model() refuses whatever the samples: throws Error(usage) for an unknown name, and where the model has no
// block that could begin so.
void require_model(const std::string& name, BlockStart start);

// The name of the same model with blurred maps; that of one with them already is left as it is. Not all have one:
// make_model() says so.
std::string with_blur(const std::string& name);

// Throws Error(usage) unless the model that make_model() makes of `options` also takes images of such a size.
void require_takes(const ModelOptions& options, std::int64_t height, std::int64_t width);

std::vector<std::string> model_names();
// "convnet, lenet, ...", both without those that only blur beside.
std::string known_models();

}  // namespace lockstep
