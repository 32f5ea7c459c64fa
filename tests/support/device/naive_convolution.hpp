// Convolution and its gradients as plain loops in double precision: the oracle.
//
//   x       [n, h, w, in]     y  [n, h', w', out]     row-major
//   weight  [out, in, kernel rows, kernel columns]
#pragma once

#include <cstdint>
#include <vector>

#include "device/ops.hpp"

namespace lockstep::naive {

struct ConvSizes {
  Conv2d conv;
  std::int64_t n;
  std::int64_t h;
  std::int64_t w;

  std::int64_t out_h() const { return conv.rows().out_size(h); }
  std::int64_t out_w() const { return conv.columns().out_size(w); }
  std::int64_t x_count() const { return n * h * w * conv.in_channels; }
  std::int64_t y_count() const { return n * out_h() * out_w() * conv.out_channels; }
  std::int64_t weight_count() const { return conv.out_channels * conv.in_channels * conv.kernel.area(); }
};

std::vector<double> conv_forward(const ConvSizes& sizes, const std::vector<float>& x, const std::vector<float>& weight);
std::vector<double> conv_backward_data(const ConvSizes& sizes, const std::vector<float>& dy,
                                       const std::vector<float>& weight);
std::vector<double> conv_backward_weight(const ConvSizes& sizes, const std::vector<float>& x,
                                         const std::vector<float>& dy);

}  // namespace lockstep::naive
