// Loop bodies for weight matrices of flat arrays (device/flat/matrix_passes.hpp). A GPU stores a matrix by rows. One
// thread per element, unless a comment says otherwise.
#pragma once

#include <cmath>

#include "device/cuda/layout/feature_map.hpp"
#include "device/cuda/passes/flat_kernels.hpp"

namespace lockstep::cuda {

// A matrix's element in the flat array and in a wide tensor.
struct WidePlaces {
  std::int64_t columns;
  std::int64_t row_stride;  // in the wide tensor
  std::int64_t column_stride;

  LOCKSTEP_HOST_DEVICE std::int64_t wide(std::int64_t flat) const {
    const Division at = divide(flat, columns);
    return at.quotient * row_stride + at.remainder * column_stride;
  }
};

// Updates the velocity, and stores the step that SGD would take in a wide tensor. All pointers are to the first
// element.
struct TakeMomentum {
  const float* gradients;
  float* velocity;
  float* direction;
  WidePlaces places;
  float momentum;
  float own;         // of the gradient in the step
  float look_ahead;  // of the velocity in the step
  StepPlaces step;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    float* const to = direction + places.wide(index);
    if (*step.skip != 0) {
      *to = 0;
      return;
    }
    const float d = *step.gradient_scale * gradients[index];
    const float v = momentum * velocity[index] + d;
    velocity[index] = v;
    *to = own * d + look_ahead * v;
  }
};

// sums[index] = sum of squares of every `lanes`-th element from `index` on. One thread per lane.
struct SumLaneSquares {
  const float* values;
  std::int64_t count;
  std::int64_t lanes;
  double* sums;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    double sum = 0;
    for (std::int64_t i = index; i < count; i += lanes) {
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    sums[index] = sum;
  }
};

struct DivideByNorm {
  float* values;
  const double* square;
  double epsilon;  // added to the norm

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    values[index] *= static_cast<float>(1 / (sqrt(*square) + epsilon));
  }
};

// square = identity * identity's factor + matrix * its factor + square * its factor; both are [n, n].
struct AddPolynomial {
  const float* matrix;
  float* square;
  std::int64_t n;
  float of_identity;
  float of_matrix;
  float of_square;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Division at = divide(index, n);
    const float sum = of_matrix * matrix[index] + of_square * square[index];
    square[index] = at.quotient == at.remainder ? sum + of_identity : sum;
  }
};

struct PutWide {
  const float* wide;
  float* values;  // of the matrix
  WidePlaces places;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const { values[index] = wide[places.wide(index)]; }
};

}  // namespace lockstep::cuda
