// A network on a device.
#pragma once

#include "nn/layer.hpp"

namespace lockstep {

class Network {
 public:
  virtual ~Network() = default;

  // images [n, h, w, c] -> logits [n, classes], plain fp32. Under Mode::train it keeps what backward needs. Throws
  // Error(usage) if the network does not support the images' size.
  virtual Tensor forward(const Tensor& images, Mode mode) = 0;
  // Gradients of all parameters, from that of the logits, which is overwritten. Returns the gradient of the input;
  // empty for `images`.
  virtual Tensor backward(const Tensor& d_logits, GradientSink& sink) = 0;
};

}  // namespace lockstep
