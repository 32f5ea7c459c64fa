// Products with the weight matrices of a flat array and with low-rank factors of them, for the compression of gradients
// (comm/power_sgd_reducer.hpp). A matrix M [rows, columns] is approximated by B F^T: `basis` B has `rank` columns of
// M's rows, and `factors` F has `rank` columns of M's columns. Both are stored column after column.
//
// Every rank expands the same factors by itself, so these products have the same bits on every processor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "device/device.hpp"

namespace lockstep {

// A weight as a matrix: groups of `lanes` rows lie side by side. A convolution has a row per output channel, and a
// linear layer one per input. Padding is part of the matrix.
struct FlatMatrix {
  std::int64_t first;  // element of the flat array
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t lanes;
  std::int64_t group_stride;   // between elements of neighboring groups
  std::int64_t column_stride;  // between elements of neighboring columns

  std::int64_t at(std::int64_t row, std::int64_t column) const {
    return first + row / lanes * group_stride + column * column_stride + row % lanes;
  }
  std::int64_t groups() const { return (rows + lanes - 1) / lanes; }
  std::int64_t rows_in(std::int64_t group) const { return group + 1 < groups() ? lanes : rows - group * lanes; }
};

class LowRankPasses {
 public:
  virtual ~LowRankPasses() = default;

  // std::nullopt for parameters that are vectors. `first` is the parameter's first element in the flat array.
  virtual std::optional<FlatMatrix> matrix_of(ParameterKind kind, std::span<const std::int64_t> dims,
                                              std::int64_t first) const = 0;
  // a += b. Both have as many elements.
  virtual void add(std::span<float> a, std::span<const float> b) = 0;
  // basis [rank, rows] = (M F) of the matrix M in `values` and factors F that lie in the first rows of the same matrix
  // in `start`: F[column, k] is its element (k, column).
  virtual void multiply(std::span<const float> values, const FlatMatrix& matrix, std::span<const float> start,
                        std::span<float> basis) = 0;
  // factors [rank, columns] = (M^T B).
  virtual void multiply_transposed(std::span<const float> values, const FlatMatrix& matrix,
                                   std::span<const float> basis, std::span<float> factors) = 0;
  // M in `values` becomes B F^T. M in `residual` becomes what M was, less `share` of that.
  virtual void replace(std::span<float> values, const FlatMatrix& matrix, std::span<const float> basis,
                       std::span<const float> factors, float share, std::span<float> residual) = 0;
};

}  // namespace lockstep
