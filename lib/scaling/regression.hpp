// Linear least squares with coefficients that are not negative: costs that no part of a machine can pay back.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "scaling/interval.hpp"

namespace lockstep {

inline constexpr std::size_t most_features = 3;
using Features = std::array<double, most_features>;  // 0 where there are fewer

struct Observation {
  Features features;
  double value;
  double scale;  // what its error is small beside: above 0
};

struct Regression {
  Features coefficients = {};
  std::array<Features, most_features> covariance = {};  // of the coefficients
  double scatter = 0;                                   // standard deviation of an observation, as a share of its scale
  int degrees = 0;  // observations without coefficients; 0: nothing tells the scatter

  double at(const Features& features) const;
  // Where a further observation of this scale lies (Draper and Smith 1998, 1.4); without bounds where nothing tells
  // the scatter.
  Interval predict(const Features& features, double scale) const;
};

// Minimises the sum of ((coefficients * features - value) / scale)^2. Of features that the observations cannot tell
// apart the first one is taken. All zero without observations.
Regression fit_non_negative(std::span<const Observation> observations);

}  // namespace lockstep
