// The models by name, in one table.
//
//   lenet     the LeNet-5 variant of PyTorch's CIFAR tutorial: two convolutions, three linear layers
//   convnet   the MNIST net of PyTorch's distributed tutorial: two convolutions with batch norm, one linear layer
//   airbench  the CIFAR-10 net of Jordan 2024, "94% on CIFAR-10 in 3.29 seconds on a single GPU" (airbench94): a 2 x 2
//             convolution for --whiten, three blocks of two convolutions, logits divided by 9; airbench95 is wider
//   resnet20  He et al. 2015, section 4.2: for small images, with parameter-free shortcuts (option A)
//   resnet18, resnet34, resnet50, resnet101
//             torchvision's; up to 64 pixels with a stem for small images (3 x 3, no pooling)
//   resnet18-blur, ...
//             each residual network with a blur before strided convolutions of at least 16 input channels; the
//             weights keep their names (Zhang 2019; placement as in FFCV's train_imagenet.py)
//
// Other models come from ONNX files, or from the description in a model file or checkpoint that was trained from one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "network/graph.hpp"
#include "nn/network.hpp"
#include "nn/sample_shape.hpp"

namespace lockstep {

// Initial state of residual blocks. `zero_gamma`: the scale of a block's last norm is 0 (zero-init residual, Goyal et
// al. 2017, section 5.1).
enum class ResidualInit : std::uint8_t { standard, zero_gamma };

// Initial filters of convolutions with a center, of more than one pixel, and with no fewer outputs than inputs.
// `identity`: the first ones pass the input channels on, see Initial (Zagoruyko and Komodakis 2017, "DiracNets").
enum class FilterInit : std::uint8_t { standard, identity };

struct ModelOptions {
  std::string name;  // or the path of an ONNX file: NAME.onnx
  SampleShape sample;
  std::int64_t classes = 0;
  std::int64_t width_divisor = 1;  // divides the channels of residual networks: small copies for tests
  ResidualInit residual_init = ResidualInit::standard;
  FilterInit filter_init = FilterInit::standard;
  std::string network = {};  // description (network/network_text.hpp) of a model that is not in the table
};

// Describes the network, from images [height, width, channels] to logits [classes]. Throws Error(usage) for an unknown
// name, or if the model does not support the sample shape or the classes; as read_onnx_network() and
// network_from_text() for a model that is not in the table.
NetworkGraph model_graph(const ModelOptions& options);
// Registers the parameters of that network with `context.store`. Throws as model_graph().
std::unique_ptr<Network> make_model(const ModelOptions& options, const LayerContext& context);

// The checks of model_graph() that do not depend on samples. Throws Error(usage) for an unknown name, or if the model
// has no blocks that support `start`.
void require_model(const std::string& name, ResidualInit start);

// Name of the model's variant with blur; unchanged if the name already has it. Some models have no such variant:
// model_graph() then throws.
std::string with_blur(const std::string& name);

// Throws Error(usage) unless the model that make_model() builds from `options` also supports this image size.
void require_takes(const ModelOptions& options, std::int64_t height, std::int64_t width);

std::vector<std::string> model_names();
// "convnet, lenet, ...". This and model_names() leave out the -blur variants.
std::string known_models();

}  // namespace lockstep
