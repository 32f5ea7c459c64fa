// A network on a device.
#pragma once

#include <cstdint>

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
  // Stream-ordered; not for use within a captured graph. Decides what dropout drops in the next forward and backward: a
  // pure function of the arguments. `first_sample`: number of the micro-batch's first sample in the step's batch.
  virtual void draw_dropout(std::uint64_t /*seed*/, std::int64_t /*step*/, std::int64_t /*first_sample*/) {}
};

}  // namespace lockstep
