#include "scaling/regression.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

using Matrix = std::array<Features, max_features>;

struct NormalEquations {
  Matrix products = {};  // of features, each scaled by its size
  Features values = {};
  Features sizes = {};
};

NormalEquations normal_equations(std::span<const Observation> observations) {
  NormalEquations equations;
  for (const Observation& one : observations) {
    for (std::size_t i = 0; i < max_features; ++i) {
      const double x = one.features[i] / one.scale;
      equations.sizes[i] += x * x;
    }
  }
  for (double& size : equations.sizes) size = std::sqrt(size);
  for (const Observation& one : observations) {
    for (std::size_t i = 0; i < max_features; ++i) {
      if (equations.sizes[i] == 0) continue;
      const double x = one.features[i] / one.scale / equations.sizes[i];
      equations.values[i] += x * one.value / one.scale;
      for (std::size_t j = 0; j < max_features; ++j) {
        if (equations.sizes[j] == 0) continue;
        equations.products[i][j] += x * one.features[j] / one.scale / equations.sizes[j];
      }
    }
  }
  return equations;
}

bool has(unsigned chosen, std::size_t feature) { return (chosen >> feature & 1U) != 0; }

// Inverse of the chosen rows and columns by Gauss-Jordan elimination; zero elsewhere. Nullopt if features cannot be
// distinguished.
std::optional<Matrix> inverse(Matrix matrix, unsigned chosen) {
  constexpr double least_pivot = 1e-7;  // for rows whose diagonal was scaled to 1
  Matrix result = {};
  for (std::size_t i = 0; i < max_features; ++i) {
    if (has(chosen, i)) result[i][i] = 1;
  }
  for (std::size_t pivot = 0; pivot < max_features; ++pivot) {
    if (!has(chosen, pivot)) continue;
    const double divisor = matrix[pivot][pivot];
    if (!(divisor > least_pivot)) return std::nullopt;
    for (std::size_t j = 0; j < max_features; ++j) {
      matrix[pivot][j] /= divisor;
      result[pivot][j] /= divisor;
    }
    for (std::size_t i = 0; i < max_features; ++i) {
      if (i == pivot || !has(chosen, i)) continue;
      const double factor = matrix[i][pivot];
      for (std::size_t j = 0; j < max_features; ++j) {
        matrix[i][j] -= factor * matrix[pivot][j];
        result[i][j] -= factor * result[pivot][j];
      }
    }
  }
  return result;
}

double squares_of(const Regression& fit, std::span<const Observation> observations) {
  double squares = 0;
  for (const Observation& one : observations) {
    const double error = (fit.at(one.features) - one.value) / one.scale;
    squares += error * error;
  }
  return squares;
}

}  // namespace

double Regression::at(const Features& features) const {
  double value = 0;
  for (std::size_t i = 0; i < max_features; ++i) value += coefficients[i] * features[i];
  return value;
}

Interval Regression::predict(const Features& features, double scale) const {
  Interval interval;
  interval.middle = at(features);
  if (degrees < 1) return interval;
  double variance = scatter * scatter * scale * scale;
  for (std::size_t i = 0; i < max_features; ++i) {
    for (std::size_t j = 0; j < max_features; ++j) variance += features[i] * covariance[i][j] * features[j];
  }
  const double half = student_t_quantile(degrees) * std::sqrt(std::max(variance, 0.0));
  interval.low = interval.middle - half;
  interval.high = interval.middle + half;
  return interval;
}

// There are few features, so this tries every subset and keeps the best fit without negative coefficients.
Regression fit_non_negative(std::span<const Observation> observations) {
  const NormalEquations equations = normal_equations(observations);
  Regression best;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned chosen = 0; chosen < 1U << max_features; ++chosen) {
    const std::optional<Matrix> inverted = inverse(equations.products, chosen);
    if (!inverted) continue;
    Regression fit;
    int features = 0;
    bool is_negative = false;
    for (std::size_t i = 0; i < max_features; ++i) {
      if (!has(chosen, i)) continue;
      ++features;
      for (std::size_t j = 0; j < max_features; ++j) {
        if (has(chosen, j)) fit.coefficients[i] += (*inverted)[i][j] * equations.values[j];
      }
      fit.coefficients[i] /= equations.sizes[i];
      is_negative = is_negative || fit.coefficients[i] < 0;
    }
    if (is_negative || static_cast<int>(observations.size()) < features) continue;
    const double squares = squares_of(fit, observations);
    constexpr double enough = 1 - 1e-6;  // smaller gains are rounding errors
    if (!(squares < enough * least)) continue;
    least = squares;
    fit.degrees = static_cast<int>(observations.size()) - features;
    fit.scatter = fit.degrees > 0 ? std::sqrt(squares / fit.degrees) : 0;
    for (std::size_t i = 0; i < max_features; ++i) {
      for (std::size_t j = 0; j < max_features; ++j) {
        if (!has(chosen, i) || !has(chosen, j)) continue;
        fit.covariance[i][j] = fit.scatter * fit.scatter * (*inverted)[i][j] / equations.sizes[i] / equations.sizes[j];
      }
    }
    best = fit;
  }
  return best;
}

}  // namespace lockstep
