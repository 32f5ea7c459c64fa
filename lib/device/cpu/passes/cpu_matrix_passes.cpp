#include "device/cpu/passes/cpu_matrix_passes.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/passes/cpu_flat_update.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t most_lanes = 16;

}  // namespace

FlatMatrix filter_matrix(const CpuContext& context, std::span<const std::int64_t> dims, std::int64_t first) {
  const std::int64_t lanes = context.lanes;
  const std::int64_t rows = whole_blocks(dims[0], lanes);
  const std::int64_t columns = storage_count(ParameterKind::conv_weight, dims, context.lanes) / rows;
  return {first, rows, columns, lanes, columns * lanes, lanes};
}

void CpuMatrixPasses::take_momentum(const Tensor& gradients, const FlatMatrix& matrix, const MatrixMomentum& momentum,
                                    const StepRecord& record, const Tensor& velocity, const Tensor& direction) {
  assert(direction.shape() == wide_shape(matrix) && matrix.lanes <= most_lanes);
  float* const into = direction.as<float>();
  if (!is_applied(record)) {
    std::fill_n(into, matrix.count(), 0.0F);
    return;
  }
  const float scale = *record.at(step_gradient_scale).as<float>();
  const float kept = momentum.momentum;
  const float own = momentum.kind == Momentum::nesterov ? 1.0F : 0.0F;
  const float look_ahead = momentum.kind == Momentum::nesterov ? momentum.momentum : 1.0F;
  const WideStrides strides(matrix);
  const Tensor scratch = scratch_tensor(context_.arena, matrix.groups() * std::int64_t{sizeof(double)});
  auto* const squares = reinterpret_cast<double*>(scratch.data());
  parallel_for(context_.threads, matrix.groups(), [&](std::int64_t group) {
    const std::int64_t lanes = matrix.lanes;
    const std::int64_t place = matrix.at(group * lanes, 0);
    std::array<double, most_lanes> sums{};
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      const float* const g = gradients.as<float>() + place + column * lanes;
      float* const v = velocity.as<float>() + place + column * lanes;
      float* const to = into + group * lanes * strides.row + column * strides.column;
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const float d = scale * g[lane];
        v[lane] = kept * v[lane] + d;
        const float step = own * d + look_ahead * v[lane];
        to[lane * strides.row] = step;
        sums[static_cast<std::size_t>(lane)] += static_cast<double>(step) * static_cast<double>(step);
      }
    }
    squares[group] = 0;
    for (const double sum : sums) squares[group] += sum;
  });
  double square = 0;
  for (std::int64_t group = 0; group < matrix.groups(); ++group) square += squares[group];
  const auto factor = static_cast<float>(1 / (std::sqrt(square) + norm_epsilon));
  parallel_parts(context_.threads, matrix.count(), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) into[i] *= factor;
  });
}

void CpuMatrixPasses::add_polynomial(const Tensor& matrix, const std::array<float, 3>& factors, const Tensor& square) {
  const std::int64_t n = matrix.shape()[0];
  assert(matrix.shape() == Shape({n, n}) && square.shape() == matrix.shape());
  const float* const from = matrix.as<float>();
  float* const into = square.as<float>();
  parallel_for(context_.threads, n, [=](std::int64_t row) {
    for (std::int64_t i = row * n; i < (row + 1) * n; ++i) into[i] = factors[1] * from[i] + factors[2] * into[i];
    into[row * n + row] += factors[0];
  });
}

void CpuMatrixPasses::put(const Tensor& wide, const FlatMatrix& matrix, const Tensor& values) {
  assert(wide.shape() == wide_shape(matrix));
  const WideStrides strides(matrix);
  parallel_for(context_.threads, matrix.groups(), [&](std::int64_t group) {
    const std::int64_t lanes = matrix.lanes;
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      const float* const from = wide.as<float>() + group * lanes * strides.row + column * strides.column;
      float* const to = values.as<float>() + matrix.at(group * lanes, column);
      for (std::int64_t lane = 0; lane < lanes; ++lane) to[lane] = from[lane * strides.row];
    }
  });
}

}  // namespace lockstep::cpu
