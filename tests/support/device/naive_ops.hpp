// The arithmetic of Ops without convolutions as plain loops in double precision: the oracle.
//
// Feature maps are row-major [n, h, w, c].
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "device/ops.hpp"

namespace lockstep::naive {

using Values = std::vector<double>;

inline std::size_t at(const Shape& shape, std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t c) {
  return static_cast<std::size_t>(((n * shape[1] + row) * shape[2] + column) * shape[3] + c);
}

// Calls visit(n, row, column, channel) for every element.
template <typename Visit>
void for_each_element(const Shape& shape, Visit visit) {
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t row = 0; row < shape[1]; ++row)
      for (std::int64_t column = 0; column < shape[2]; ++column)
        for (std::int64_t c = 0; c < shape[3]; ++c) visit(n, row, column, c);
}

// d/dx of sum(weights * f(x)), one element at a time.
inline Values central_differences(const std::function<Values(const Values&)>& f, Values x, const Values& weights) {
  constexpr double step = 1e-6;
  const auto weighted = [&] {
    const Values y = f(x);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * weights[i];
    return sum;
  };
  Values gradient;
  for (double& value : x) {
    const double middle = value;
    value = middle + step;
    const double above = weighted();
    value = middle - step;
    const double below = weighted();
    value = middle;
    gradient.push_back((above - below) / (2 * step));
  }
  return gradient;
}

struct Moments {
  Values mean, variance, unbiased_variance;
};

inline Moments moments(const Shape& shape, const Values& x) {
  const auto channels = static_cast<std::size_t>(shape[3]);
  const double count = static_cast<double>(shape.count()) / static_cast<double>(channels);
  Moments result{Values(channels), Values(channels), Values(channels)};
  for (std::size_t i = 0; i < x.size(); ++i) result.mean[i % channels] += x[i] / count;
  for (std::size_t i = 0; i < x.size(); ++i)
    result.variance[i % channels] += std::pow(x[i] - result.mean[i % channels], 2);
  for (std::size_t c = 0; c < channels; ++c) {
    result.unbiased_variance[c] = result.variance[c] / std::max(count - 1, 1.0);
    result.variance[c] /= count;
  }
  return result;
}

inline double activate(Activation activation, double value) {
  if (activation == Activation::gelu) return value * std::erfc(-value / std::numbers::sqrt2) / 2;
  return activation == Activation::relu ? std::max(value, 0.0) : value;
}

inline double derivative(Activation activation, double value) {
  if (activation == Activation::relu) return value <= 0 ? 0 : 1;
  if (activation == Activation::none) return 1;
  const double density = std::exp(-value * value / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return std::erfc(-value / std::numbers::sqrt2) / 2 + value * density;
}

struct Norm {
  Values scale, shift;
  Activation activation;
  double epsilon = 1e-5;
};

inline Values norm(const Norm& norm, const Values& mean, const Values& variance, const Values& x,
                   const Values& residual) {
  const std::size_t channels = norm.scale.size();
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % channels;
    const double z = norm.scale[c] * (x[i] - mean[c]) / std::sqrt(variance[c] + norm.epsilon) + norm.shift[c];
    y[i] = activate(norm.activation, residual.empty() ? z : z + residual[i]);
  }
  return y;
}

inline Values bias(const Values& x, const Values& bias, Activation activation) {
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = activate(activation, x[i] + bias[i % bias.size()]);
  return y;
}

// Largest values and their places in the windows.
inline std::pair<Values, Values> max_pool(const Pool2d& pool, const Shape& in, const Values& x) {
  const Shape out{in[0], pool.out_size(in[1]), pool.out_size(in[2]), in[3]};
  Values y(static_cast<std::size_t>(out.count()), -std::numeric_limits<double>::infinity());
  Values winner(y.size());
  for_each_element(out, [&](auto n, auto row, auto column, auto c) {
    const std::size_t to = at(out, n, row, column, c);
    for (std::int64_t place = 0; place < pool.kernel * pool.kernel; ++place) {
      const std::int64_t in_row = row * pool.stride - pool.padding + place / pool.kernel;
      const std::int64_t in_column = column * pool.stride - pool.padding + place % pool.kernel;
      if (in_row < 0 || in_row >= in[1] || in_column < 0 || in_column >= in[2]) continue;
      const double value = x[at(in, n, in_row, in_column, c)];
      if (value <= y[to]) continue;
      y[to] = value;
      winner[to] = static_cast<double>(place);
    }
  });
  return {y, winner};
}

// Means over the positions of windows that are in the map, or with `counts_padding` also over those that are up to
// `padding` beyond its edge.
inline Values average_pool(const Pool2d& pool, bool counts_padding, const Shape& in, const Values& x) {
  const Shape out{in[0], pool.out_size(in[1]), pool.out_size(in[2]), in[3]};
  Values y(static_cast<std::size_t>(out.count()));
  for_each_element(out, [&](auto n, auto row, auto column, auto c) {
    double count = 0;
    double sum = 0;
    for (std::int64_t place = 0; place < pool.kernel * pool.kernel; ++place) {
      const std::int64_t in_row = row * pool.stride - pool.padding + place / pool.kernel;
      const std::int64_t in_column = column * pool.stride - pool.padding + place % pool.kernel;
      const bool is_in_map = in_row >= 0 && in_row < in[1] && in_column >= 0 && in_column < in[2];
      const bool is_in_padding = in_row < in[1] + pool.padding && in_column < in[2] + pool.padding;
      if (is_in_map) sum += x[at(in, n, in_row, in_column, c)];
      if (is_in_map || (counts_padding && is_in_padding)) ++count;
    }
    y[at(out, n, row, column, c)] = sum / count;
  });
  return y;
}

// The channels of maps of the same size.
inline Values concat(const std::vector<Shape>& shapes, const std::vector<Values>& x) {
  Values y;
  for (std::int64_t pixel = 0; pixel < shapes[0].count() / shapes[0][3]; ++pixel) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto first = x[i].begin() + pixel * shapes[i][3];
      y.insert(y.end(), first, first + shapes[i][3]);
    }
  }
  return y;
}

inline double curve(const Curve& curve, double x) {
  switch (curve.kind) {
    case Curve::Kind::relu:
      return std::max(x, 0.0);
    case Curve::Kind::leaky_relu:
      return x > 0 ? x : static_cast<double>(curve.slope) * x;
    case Curve::Kind::clip:
      return std::clamp(x, static_cast<double>(curve.low), static_cast<double>(curve.high));
    case Curve::Kind::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Curve::Kind::tanh:
      return std::tanh(x);
    case Curve::Kind::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Curve::Kind::linear:
      return static_cast<double>(curve.slope) * x + static_cast<double>(curve.shift);
  }
  return x;
}

// By the binomial kernel about every stride-th pixel.
inline Values blur(std::int64_t stride, const Shape& in, const Shape& out, const Values& x) {
  Values y(static_cast<std::size_t>(out.count()));
  for_each_element(out, [&](auto n, auto row, auto column, auto c) {
    for (std::int64_t i = -1; i <= 1; ++i) {
      for (std::int64_t j = -1; j <= 1; ++j) {
        const std::int64_t in_row = row * stride + i;
        const std::int64_t in_column = column * stride + j;
        if (in_row < 0 || in_row >= in[1] || in_column < 0 || in_column >= in[2]) continue;
        const double weight = (i == 0 ? 0.5 : 0.25) * (j == 0 ? 0.5 : 0.25);
        y[at(out, n, row, column, c)] += weight * x[at(in, n, in_row, in_column, c)];
      }
    }
  });
  return y;
}

inline Values mean_pool(const Shape& in, const Values& x) {
  Values y(static_cast<std::size_t>(in[0] * in[3]));
  for_each_element(in, [&](auto n, auto row, auto column, auto c) {
    y[static_cast<std::size_t>(n * in[3] + c)] += x[at(in, n, row, column, c)] / static_cast<double>(in[1] * in[2]);
  });
  return y;
}

inline Values flatten(const Shape& in, const Values& x) {
  Values y(x.size());
  for_each_element(in, [&](auto n, auto row, auto column, auto c) {
    y[static_cast<std::size_t>(((n * in[3] + c) * in[1] + row) * in[2] + column)] = x[at(in, n, row, column, c)];
  });
  return y;
}

inline Values subsample(std::int64_t stride, const Shape& in, const Shape& out, const Values& x) {
  Values y(static_cast<std::size_t>(out.count()));
  for_each_element(out, [&](auto n, auto row, auto column, auto c) {
    if (c < in[3]) y[at(out, n, row, column, c)] = x[at(in, n, row * stride, column * stride, c)];
  });
  return y;
}

// One loss a sample; label -1 gives 0.
inline Values cross_entropy(const Values& logits, const std::vector<std::int32_t>& labels, double smoothing) {
  const std::size_t classes = logits.size() / labels.size();
  Values losses(labels.size());
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] < 0) continue;
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits[n * classes + c]);
    for (std::size_t c = 0; c < classes; ++c) {
      const double hit = static_cast<std::int32_t>(c) == labels[n] ? 1 - smoothing : 0;
      losses[n] -= (hit + smoothing / static_cast<double>(classes)) * (logits[n * classes + c] - std::log(sum));
    }
  }
  return losses;
}

}  // namespace lockstep::naive
