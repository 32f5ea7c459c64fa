// What a net computed, as numbers to compare: by name, in double precision.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "models/test_net.hpp"

namespace lockstep::test {

using Values = std::vector<double>;
using NamedValues = std::map<std::string, Values>;

template <typename Numbers>
Values doubles(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

// Largest error of a tensor relative to its largest value.
inline double largest_error(const Values& values, const Values& expected) {
  EXPECT_EQ(values.size(), expected.size());
  double error = 0.0;
  double largest = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::abs(values[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return error / largest;
}

// Over all tensors together.
struct Comparison {
  double relative_l2;
  double cosine;
};

inline Comparison compare(const NamedValues& values, const NamedValues& expected) {
  double difference = 0.0, dot = 0.0, square = 0.0, expected_square = 0.0;
  for (const auto& [name, one] : expected) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      const double value = values.at(name)[i];
      difference += (value - one[i]) * (value - one[i]);
      dot += value * one[i];
      square += value * value;
      expected_square += one[i] * one[i];
    }
  }
  return {std::sqrt(difference / expected_square), dot / std::sqrt(square * expected_square)};
}

inline NamedValues gradients(const TestNet& net) {
  NamedValues gradients;
  for (const Parameter& parameter : net.store.parameters()) {
    gradients[parameter.name] = doubles(net.gradient(parameter));
  }
  return gradients;
}

}  // namespace lockstep::test
