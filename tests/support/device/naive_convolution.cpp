#include "support/device/naive_convolution.hpp"

namespace lockstep::naive {
namespace {

// Calls visit(first place in x, first place in y, place in the kernel) wherever the kernel lies on a pixel.
template <typename Visit>
void for_each_pixel(const ConvSizes& sizes, const Visit& visit) {
  const Conv2d& conv = sizes.conv;
  for (std::int64_t n = 0; n < sizes.n; ++n)
    for (std::int64_t row = 0; row < sizes.out_h(); ++row)
      for (std::int64_t column = 0; column < sizes.out_w(); ++column)
        for (std::int64_t kr = 0; kr < conv.kernel.height; ++kr)
          for (std::int64_t kc = 0; kc < conv.kernel.width; ++kc) {
            const std::int64_t r = row * conv.stride.height + kr - conv.padding.height;
            const std::int64_t c = column * conv.stride.width + kc - conv.padding.width;
            if (r < 0 || r >= sizes.h || c < 0 || c >= sizes.w) continue;
            visit(((n * sizes.h + r) * sizes.w + c) * conv.in_channels,
                  ((n * sizes.out_h() + row) * sizes.out_w() + column) * conv.out_channels,
                  kr * conv.kernel.width + kc);
          }
}

// sums[i] += factor * values[i]
void add_product(double factor, const double* values, std::int64_t count, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += factor * values[i];
}

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// Places in a weight, and in a copy of it whose last dimension is that of neighboring channels.
struct WeightPlaces {
  const Conv2d& conv;

  std::int64_t given(std::int64_t o, std::int64_t i, std::int64_t k) const {
    return (o * conv.in_channels + i) * conv.kernel.area() + k;
  }
  std::int64_t by_input(std::int64_t o, std::int64_t i, std::int64_t k) const {  // [kernel, in, out]
    return (k * conv.in_channels + i) * conv.out_channels + o;
  }
  std::int64_t by_output(std::int64_t o, std::int64_t i, std::int64_t k) const {  // [kernel, out, in]
    return (k * conv.out_channels + o) * conv.in_channels + i;
  }
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t o = 0; o < conv.out_channels; ++o)
      for (std::int64_t i = 0; i < conv.in_channels; ++i)
        for (std::int64_t k = 0; k < conv.kernel.area(); ++k) visit(o, i, k);
  }
};

}  // namespace

std::vector<double> conv_forward(const ConvSizes& sizes, const std::vector<float>& x,
                                 const std::vector<float>& weight) {
  const Conv2d& conv = sizes.conv;
  const WeightPlaces places{conv};
  std::vector<double> copy(weight.size());
  places.for_each(
      [&](auto o, auto i, auto k) { copy.at(places.by_input(o, i, k)) = weight.at(places.given(o, i, k)); });
  const std::vector<double> values = doubles(x);
  std::vector<double> y(static_cast<std::size_t>(sizes.y_count()));
  for_each_pixel(sizes, [&](auto in, auto out, auto k) {
    for (std::int64_t i = 0; i < conv.in_channels; ++i) {
      add_product(values[in + i], copy.data() + places.by_input(0, i, k), conv.out_channels, y.data() + out);
    }
  });
  return y;
}

std::vector<double> conv_backward_data(const ConvSizes& sizes, const std::vector<float>& dy,
                                       const std::vector<float>& weight) {
  const Conv2d& conv = sizes.conv;
  const WeightPlaces places{conv};
  std::vector<double> copy(weight.size());
  places.for_each(
      [&](auto o, auto i, auto k) { copy.at(places.by_output(o, i, k)) = weight.at(places.given(o, i, k)); });
  const std::vector<double> values = doubles(dy);
  std::vector<double> dx(static_cast<std::size_t>(sizes.x_count()));
  for_each_pixel(sizes, [&](auto in, auto out, auto k) {
    for (std::int64_t o = 0; o < conv.out_channels; ++o) {
      add_product(values[out + o], copy.data() + places.by_output(o, 0, k), conv.in_channels, dx.data() + in);
    }
  });
  return dx;
}

std::vector<double> conv_backward_weight(const ConvSizes& sizes, const std::vector<float>& x,
                                         const std::vector<float>& dy) {
  const Conv2d& conv = sizes.conv;
  const WeightPlaces places{conv};
  const std::vector<double> values = doubles(x);
  const std::vector<double> factors = doubles(dy);
  std::vector<double> sums(static_cast<std::size_t>(sizes.weight_count()));
  for_each_pixel(sizes, [&](auto in, auto out, auto k) {
    for (std::int64_t o = 0; o < conv.out_channels; ++o) {
      add_product(factors[out + o], values.data() + in, conv.in_channels, sums.data() + places.by_output(o, 0, k));
    }
  });
  std::vector<double> dweight(sums.size());
  places.for_each(
      [&](auto o, auto i, auto k) { dweight.at(places.given(o, i, k)) = sums.at(places.by_output(o, i, k)); });
  return dweight;
}

}  // namespace lockstep::naive
