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
#include "device/flat/flat_matrix.hpp"

namespace lockstep {

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
