// Passes over the weight matrices of a flat array, for optimizers that multiply gradients as matrices (optim/muon.hpp).
// Between these passes, Ops multiplies plain tensors.
//
// A matrix has a row per output channel of a convolution. Padding is part of it, and the order of columns is the
// device's. Products of a matrix with its transpose depend on neither: padding stays zero, and columns keep their
// places.
//
// A plain tensor is a wide matrix [shorter, longer]: transposed if there are more rows than columns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "device/flat/flat_matrix.hpp"
#include "device/flat/step_record.hpp"
#include "device/flat/update_rule.hpp"
#include "device/tensor.hpp"

namespace lockstep {

inline Shape wide_shape(const FlatMatrix& matrix) {
  return {std::min(matrix.rows, matrix.columns), std::max(matrix.rows, matrix.columns)};
}

// Distances in a wide tensor between rows and between columns of the matrix.
struct WideStrides {
  explicit WideStrides(const FlatMatrix& matrix)
      : row(matrix.rows <= matrix.columns ? matrix.columns : 1),
        column(matrix.rows <= matrix.columns ? 1 : matrix.rows) {}

  std::int64_t row;
  std::int64_t column;
};

// The momentum of a matrix, as in SgdRule, without weight decay.
struct MatrixMomentum {
  float momentum;
  Momentum kind;
};

// Added to the norm that a direction is divided by, so that a gradient of zeros gives a direction of zeros.
constexpr double norm_epsilon = 1e-7;

// Every call is stream-ordered.
class MatrixPasses {
 public:
  virtual ~MatrixPasses() = default;

  // A convolution's weight. `first` is its first element in the flat array.
  virtual FlatMatrix matrix_of(std::span<const std::int64_t> dims, std::int64_t first) const = 0;
  // Updates the matrix in `velocity` by that in `gradients`. `direction` (wide) becomes the step that SgdRule would
  // take, divided by its Frobenius norm. If the verdict in the record is not `applied`, the velocity keeps its value
  // and the direction is zero.
  virtual void take_momentum(const Tensor& gradients, const FlatMatrix& matrix, const MatrixMomentum& momentum,
                             const StepRecord& record, const Tensor& velocity, const Tensor& direction) = 0;
  // square = factors[0] * identity + factors[1] * matrix + factors[2] * square. Both are [n, n].
  virtual void add_polynomial(const Tensor& matrix, const std::array<float, 3>& factors, const Tensor& square) = 0;
  // The matrix in `values` becomes `wide`. `values` is no array that a layer reads.
  virtual void put(const Tensor& wide, const FlatMatrix& matrix, const Tensor& values) = 0;
};

}  // namespace lockstep
