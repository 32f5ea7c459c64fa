// MatrixPasses for GPUs: launches of the loop bodies in matrix_kernels.hpp. `Launch` runs them on a GPU or, for tests,
// on the host. Include only where a Launch is chosen.
#pragma once

#include <algorithm>
#include <cassert>

#include "device/cuda/cuda_context.hpp"
#include "device/cuda/layout/cuda_layout.hpp"
#include "device/cuda/passes/device_table.hpp"
#include "device/cuda/passes/matrix_kernels.hpp"
#include "device/flat/matrix_passes.hpp"

namespace lockstep::cuda {

template <typename Launch>
class KernelMatrixPasses final : public MatrixPasses {
 public:
  // `context` outlives this.
  KernelMatrixPasses(const CudaContext& context, const Launch& launch) : context_(context), launch_(launch) {}

  FlatMatrix matrix_of(std::span<const std::int64_t> dims, std::int64_t first) const override {
    const std::int64_t rows = padded(dims[0]);
    const std::int64_t columns = storage_count(ParameterKind::conv_weight, dims) / rows;
    return {first, rows, columns, 1, columns, 1};
  }

  void take_momentum(const Tensor& gradients, const FlatMatrix& matrix, const MatrixMomentum& momentum,
                     const StepRecord& record, const Tensor& velocity, const Tensor& direction) override {
    assert(direction.shape() == wide_shape(matrix));
    const bool is_nesterov = momentum.kind == Momentum::nesterov;
    launch_(matrix.count(),
            TakeMomentum{gradients.as<float>() + matrix.first, velocity.as<float>() + matrix.first,
                         direction.as<float>(), places_of(matrix), momentum.momentum, is_nesterov ? 1.0F : 0.0F,
                         is_nesterov ? momentum.momentum : 1.0F, places_in(record)});
    const Tensor square = sum_of_squares(direction);
    launch_(matrix.count(), DivideByNorm{direction.as<float>(), entries_of<const double>(square), norm_epsilon});
  }

  void add_polynomial(const Tensor& matrix, const std::array<float, 3>& factors, const Tensor& square) override {
    const std::int64_t n = matrix.shape()[0];
    assert(matrix.shape() == Shape({n, n}) && square.shape() == matrix.shape());
    launch_(n * n, AddPolynomial{matrix.as<float>(), square.as<float>(), n, factors[0], factors[1], factors[2]});
  }

  void put(const Tensor& wide, const FlatMatrix& matrix, const Tensor& values) override {
    assert(wide.shape() == wide_shape(matrix));
    launch_(matrix.count(), PutWide{wide.as<float>(), values.as<float>() + matrix.first, places_of(matrix)});
  }

 private:
  static WidePlaces places_of(const FlatMatrix& matrix) {
    const WideStrides strides(matrix);
    return {matrix.columns, strides.row, strides.column};
  }

  // One double. The number of elements alone decides how they are added.
  Tensor sum_of_squares(const Tensor& values) const {
    constexpr std::int64_t most_lanes = 65536;
    constexpr std::int64_t group = 256;  // sums that one thread adds
    const std::int64_t count = values.shape().count();
    const std::int64_t lanes = std::min(count, most_lanes);
    Tensor sums = table<double>(context_.arena, lanes);
    launch_(lanes, SumLaneSquares{values.as<float>(), count, lanes, entries_of<double>(sums)});
    while (sums.shape().count() > 1) {
      const std::int64_t before = sums.shape().count();
      const Tensor fewer = table<double>(context_.arena, (before + group - 1) / group);
      launch_(fewer.shape().count(), AddGroups{entries_of<double>(sums), before, group, entries_of<double>(fewer)});
      sums = fewer;
    }
    return sums;
  }

  const CudaContext& context_;
  Launch launch_;
};

}  // namespace lockstep::cuda
