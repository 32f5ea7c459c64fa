// Fully connected layer: y = activation(x * weight^T + bias). Always fp32.
//
//   x       [n, in]
//   weight  [out, in]
//   bias    [out]
//   y       [n, out]
#pragma once

#include <cstdint>
#include <string>

#include "nn/layer.hpp"

namespace lockstep {

class Linear final : public PlainLayer {
 public:
  // Registers `name`.weight and `name`.bias.
  Linear(const LayerContext& context, const std::string& name, std::int64_t in, std::int64_t out,
         Activation activation = Activation::none);

 private:
  Tensor compute(const Tensor& x, Mode mode) override;
  Tensor differentiate(const Tensor& dy, GradientSink& sink) override;

  Device& device_;
  std::int64_t in_;
  std::int64_t out_;
  Activation activation_;
  const Parameter& weight_;
  const Parameter& bias_;
  Tensor x_;  // saved for backward
  Tensor y_;  // saved for backward if there is an activation
};

}  // namespace lockstep
