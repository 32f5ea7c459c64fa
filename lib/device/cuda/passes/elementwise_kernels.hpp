// Elementwise operations: one thread per vector of a map, or per value of a plain array.
#pragma once

#include "device/cuda/layout/feature_map.hpp"
#include "device/curve.hpp"
#include "device/dropout.hpp"

namespace lockstep::cuda {

// Keeps padding channels zero.
template <DType dtype>
struct Activate {
  Curve curve;
  FeatureMap x;
  std::byte* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t first = divide(index, x.groups).remainder * vector_width;
    ChannelVector values = load<dtype>(x.data, index);
    for (int i = 0; i < vector_width; ++i) {
      values.at[i] = first + i < x.channels ? curve_value(curve, values.at[i]) : 0;
    }
    store<dtype>(values, y, index);
  }
};

template <DType dtype>
struct ActivateGradient {
  Curve curve;
  const std::byte* saved;
  const std::byte* dy;
  std::byte* dx;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const ChannelVector kept = load<dtype>(saved, index);
    ChannelVector values = load<dtype>(dy, index);
    for (int i = 0; i < vector_width; ++i) values.at[i] *= curve_derivative(curve, kept.at[i]);
    store<dtype>(values, dx, index);
  }
};

template <DType dtype>
struct Drop {
  DropoutDraws draws;
  FeatureMap x;
  std::byte* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    constexpr int quad_size = DropoutDraws::quad_size;
    const Division by_group = divide(index, x.groups);
    const Division by_image = divide(by_group.quotient, x.pixels());
    ChannelVector values = load<dtype>(x.data, index);
    for (int first = 0; first < vector_width; first += quad_size) {
      const std::int64_t number = (by_group.remainder * vector_width + first) / quad_size;
      const auto factors = draws.factors(by_image.quotient, by_image.remainder, number);
      for (int i = 0; i < quad_size; ++i) values.at[first + i] *= factors[static_cast<std::size_t>(i)];
    }
    store<dtype>(values, y, index);
  }
};

template <DType dtype>
struct Add {
  const std::byte* a;
  const std::byte* b;
  std::byte* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const ChannelVector more = load<dtype>(b, index);
    ChannelVector values = load<dtype>(a, index);
    for (int i = 0; i < vector_width; ++i) values.at[i] += more.at[i];
    store<dtype>(values, y, index);
  }
};

template <DType dtype>
struct Copy {
  const std::byte* x;
  std::byte* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const { store<dtype>(load<dtype>(x, index), y, index); }
};

struct ActivatePlain {
  Curve curve;
  const float* x;
  float* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const { y[index] = curve_value(curve, x[index]); }
};

struct ActivateGradientPlain {
  Curve curve;
  const float* saved;
  const float* dy;
  float* dx;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    dx[index] = dy[index] * curve_derivative(curve, saved[index]);
  }
};

// One thread for a quad of features.
struct DropPlain {
  DropoutDraws draws;
  const float* x;
  float* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Division place = divide(index, draws.quads());
    const auto factors = draws.factors(place.quotient, 0, place.remainder);
    const std::int64_t first = DropoutDraws::quad_size * place.remainder;
    for (std::int64_t i = first; i < first + DropoutDraws::quad_size && i < draws.channels; ++i) {
      const std::int64_t at = place.quotient * draws.channels + i;
      y[at] = x[at] * factors[static_cast<std::size_t>(i - first)];
    }
  }
};

struct AddPlain {
  const float* a;
  const float* b;
  float* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const { y[index] = a[index] + b[index]; }
};

struct CopyPlain {
  const float* x;
  float* y;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const { y[index] = x[index]; }
};

}  // namespace lockstep::cuda
