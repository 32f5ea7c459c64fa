// Linear least squares with non-negative coefficients, because the costs of a machine are never negative.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "scaling/interval.hpp"

namespace lockstep {

inline constexpr std::size_t max_features = 3;
using Features = std::array<double, max_features>;  // unused ones are 0

struct Observation {
  Features features;
  double value;
  double scale;  // errors are relative to it; positive
};

struct Regression {
  Features coefficients = {};
  std::array<Features, max_features> covariance = {};  // of the coefficients
  double scatter = 0;                                  // standard deviation of an observation, relative to its scale
  int degrees = 0;                                     // observations minus coefficients; 0: the scatter is unknown

  double at(const Features& features) const;
  // Prediction interval of another observation of this scale (Draper and Smith 1998, 1.4). Its bounds are infinite if
  // the scatter is unknown.
  Interval predict(const Features& features, double scale) const;
};

// Minimizes the sum of ((coefficients * features - value) / scale)^2. Of features that the observations cannot
// distinguish, the first one is used. Without observations, all coefficients are 0.
Regression fit_non_negative(std::span<const Observation> observations);

}  // namespace lockstep
