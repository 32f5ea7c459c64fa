#include "models/plain_nets.hpp"

#include "nn/conv_norm_act.hpp"
#include "nn/convolution.hpp"
#include "nn/flatten.hpp"
#include "nn/linear.hpp"
#include "nn/pooling.hpp"
#include "nn/sequential.hpp"

namespace lockstep {
namespace {

constexpr Pool2d halve{.kernel = 2, .stride = 2};

std::int64_t flat_size(const Layer& features, const SampleShape& sample) {
  const Shape shape = features.output_shape({1, sample.height, sample.width, sample.channels});
  return shape[1] * shape[2] * shape[3];
}

}  // namespace

std::unique_ptr<Layer> make_lenet(const ModelOptions& options, const LayerContext& context) {
  const ConvolutionOptions relu{Bias::learned, WeightScheme::uniform_fan_in, Activation::relu};
  auto net = std::make_unique<Sequential>();
  net->add(std::make_unique<Convolution>(context, "conv1", Conv2d{options.sample.channels, 6, 5}, relu));
  net->add(std::make_unique<MaxPool>(context, halve));
  net->add(std::make_unique<Convolution>(context, "conv2", Conv2d{6, 16, 5}, relu));
  net->add(std::make_unique<MaxPool>(context, halve));
  const std::int64_t flat = flat_size(*net, options.sample);
  net->add(std::make_unique<Flatten>(context));
  net->add(std::make_unique<Linear>(context, "fc1", flat, 120, Activation::relu));
  net->add(std::make_unique<Linear>(context, "fc2", 120, 84, Activation::relu));
  net->add(std::make_unique<Linear>(context, "fc3", 84, options.classes));
  return net;
}

std::unique_ptr<Layer> make_convnet(const ModelOptions& options, const LayerContext& context) {
  const ConvolutionOptions biased{Bias::learned, WeightScheme::uniform_fan_in};
  auto net = std::make_unique<Sequential>();
  const Conv2d conv1{.in_channels = options.sample.channels, .out_channels = 16, .kernel = 5, .padding = 2};
  const Conv2d conv2{.in_channels = 16, .out_channels = 32, .kernel = 5, .padding = 2};
  net->add(std::make_unique<ConvNormAct>(context, "layer1.0", "layer1.1", conv1, biased, Activation::relu));
  net->add(std::make_unique<MaxPool>(context, halve));
  net->add(std::make_unique<ConvNormAct>(context, "layer2.0", "layer2.1", conv2, biased, Activation::relu));
  net->add(std::make_unique<MaxPool>(context, halve));
  const std::int64_t flat = flat_size(*net, options.sample);
  net->add(std::make_unique<Flatten>(context));
  net->add(std::make_unique<Linear>(context, "fc", flat, options.classes));
  return net;
}

}  // namespace lockstep
