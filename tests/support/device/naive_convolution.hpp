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

// Calls visit(place in x, place in weight, place in y) for every product of a convolution.
template <typename Visit>
void for_each_product(const ConvSizes& sizes, Visit visit) {
  const Conv2d& conv = sizes.conv;
  for (std::int64_t n = 0; n < sizes.n; ++n)
    for (std::int64_t row = 0; row < sizes.out_h(); ++row)
      for (std::int64_t column = 0; column < sizes.out_w(); ++column)
        for (std::int64_t kr = 0; kr < conv.kernel.height; ++kr)
          for (std::int64_t kc = 0; kc < conv.kernel.width; ++kc) {
            const std::int64_t r = row * conv.stride.height + kr - conv.padding.height;
            const std::int64_t c = column * conv.stride.width + kc - conv.padding.width;
            if (r < 0 || r >= sizes.h || c < 0 || c >= sizes.w) continue;
            const std::int64_t x = ((n * sizes.h + r) * sizes.w + c) * conv.in_channels;
            const std::int64_t y = ((n * sizes.out_h() + row) * sizes.out_w() + column) * conv.out_channels;
            for (std::int64_t o = 0; o < conv.out_channels; ++o)
              for (std::int64_t i = 0; i < conv.in_channels; ++i)
                visit(x + i, ((o * conv.in_channels + i) * conv.kernel.height + kr) * conv.kernel.width + kc, y + o);
          }
}

inline std::vector<double> conv_forward(const ConvSizes& sizes, const std::vector<float>& x,
                                        const std::vector<float>& weight) {
  std::vector<double> y(static_cast<std::size_t>(sizes.y_count()));
  for_each_product(sizes, [&](auto i, auto k, auto o) {
    y[static_cast<std::size_t>(o)] +=
        static_cast<double>(x[static_cast<std::size_t>(i)]) * weight[static_cast<std::size_t>(k)];
  });
  return y;
}

inline std::vector<double> conv_backward_data(const ConvSizes& sizes, const std::vector<float>& dy,
                                              const std::vector<float>& weight) {
  std::vector<double> dx(static_cast<std::size_t>(sizes.x_count()));
  for_each_product(sizes, [&](auto i, auto k, auto o) {
    dx[static_cast<std::size_t>(i)] +=
        static_cast<double>(dy[static_cast<std::size_t>(o)]) * weight[static_cast<std::size_t>(k)];
  });
  return dx;
}

inline std::vector<double> conv_backward_weight(const ConvSizes& sizes, const std::vector<float>& x,
                                                const std::vector<float>& dy) {
  std::vector<double> dweight(static_cast<std::size_t>(sizes.weight_count()));
  for_each_product(sizes, [&](auto i, auto k, auto o) {
    dweight[static_cast<std::size_t>(k)] +=
        static_cast<double>(x[static_cast<std::size_t>(i)]) * dy[static_cast<std::size_t>(o)];
  });
  return dweight;
}

}  // namespace lockstep::naive
