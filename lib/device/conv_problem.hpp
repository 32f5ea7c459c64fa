// One convolution in one direction, with its sizes and storage: the key by which a kernel is chosen.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>

#include "device/ops.hpp"
#include "device/tensor.hpp"

namespace lockstep {

enum class Direction : std::uint8_t { forward, backward_data, backward_weight };

// Operands by direction, the output last. Forward: x, weight, y. Backward-data: dy, weight, dx. Backward-weight: x, dy,
// dweight.
struct ConvProblem {
  Direction direction;
  Conv2d conv;
  std::int64_t n;                                 // images
  std::int64_t h;                                 // height of the input
  std::int64_t w;                                 // width of the input
  Layout input;                                   // of x or dx: images or features
  DType precision;                                // of features
  Accumulate accumulate = Accumulate::overwrite;  // into the output; add: on GPUs, backward-data alone

  double flops() const {
    return 2.0 * static_cast<double>(n * conv.rows().out_size(h) * conv.columns().out_size(w) * conv.out_channels) *
           static_cast<double>(conv.in_channels * conv.kernel.area());
  }
  // "forward 16->32 kernel 3 stride 2 padding 1 on 128x32x32 features f32", and ", added" for Accumulate::add. Sizes
  // that differ between rows and columns: "kernel 1x7".
  std::string text() const;

  auto key() const {
    const auto& [in, out, kernel, stride, padding] = conv;
    return std::tuple(direction, in, out, kernel.height, kernel.width, stride.height, stride.width, padding.height,
                      padding.width, n, h, w, input, precision, accumulate);
  }
  bool operator<(const ConvProblem& other) const { return key() < other.key(); }
};

}  // namespace lockstep
