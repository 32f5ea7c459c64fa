// 2-D convolution, alone or followed by bias and activation (for networks without batch norm).
//
//   x       [n, h, w, in]                features, or images in a network's first layer
//   weight  [out, in, kernel, kernel]
//   bias    [out]                        optional; required with an activation
//   y       [n, h', w', out]             features; h' = (h + 2*padding - kernel) / stride + 1, likewise w'
#pragma once

#include <string>

#include "nn/layer.hpp"

namespace lockstep {

enum class Bias { none, learned };

// Initialization of weights: that of torchvision's ResNets, or PyTorch's default.
enum class WeightScheme { he_normal_fan_out, uniform_fan_in };

struct ConvolutionOptions {
  Bias bias = Bias::none;  // a batch norm that follows would absorb it
  WeightScheme scheme = WeightScheme::he_normal_fan_out;
  Activation activation = Activation::none;
};

class Convolution final : public Layer {
 public:
  // Registers `name`.weight and, if there is a bias, `name`.bias.
  Convolution(const LayerContext& context, const std::string& name, const Conv2d& conv,
              const ConvolutionOptions& options);

  Shape output_shape(const Shape& x) const override;
  Tensor forward(const Tensor& x, Mode mode) override { return forward({x}, Tensor(), mode); }
  Tensor backward(const Tensor& dy, GradientSink& sink) override { return backward({dy}, {}, Tensor(), sink); }
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override;

  // Forward between batch norms. `sums`: see Ops::conv_forward; empty if the convolution has a bias.
  Tensor forward(const NormedMap& x, const Tensor& sums, Mode mode);
  // Returns the gradient of x, added to `sum` unless `sum` is empty. If `front` is not empty, the result is the
  // gradient after that norm's activation. With a bias, dy must not be deferred.
  Tensor backward(NormedGradient dy, const PreviousNorm& front, const Tensor& sum, GradientSink& sink);
  bool has_bias() const { return bias_ != nullptr; }

 private:
  Shape y_shape(const Shape& x) const;

  Device& device_;
  std::string name_;
  Conv2d conv_;
  Activation activation_;
  const Parameter& weight_;
  const Parameter* bias_;
  NormedMap x_;  // saved for backward
  Tensor y_;     // saved for backward if there is an activation
};

}  // namespace lockstep
