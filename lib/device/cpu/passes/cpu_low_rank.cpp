#include "device/cpu/passes/cpu_low_rank.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/passes/cpu_matrix_passes.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t widest_block = 16;
using Lanes = std::array<float, widest_block>;

std::int64_t rank_of(std::span<const float> vectors, std::int64_t length) {
  assert(static_cast<std::int64_t>(vectors.size()) % length == 0);
  return static_cast<std::int64_t>(vectors.size()) / length;
}

// `run` with the number of rows in a group. A constant one lets the compiler use vectors.
template <typename Run>
void with_lanes(std::int64_t rows, const Run& run) {
  if (rows == widest_block) return run(std::integral_constant<std::int64_t, widest_block>{});
  if (rows == widest_block / 2) return run(std::integral_constant<std::int64_t, widest_block / 2>{});
  run(rows);
}

}  // namespace

std::optional<FlatMatrix> CpuLowRankPasses::matrix_of(ParameterKind kind, std::span<const std::int64_t> dims,
                                                      std::int64_t first) const {
  if (kind == ParameterKind::channel_vector) return std::nullopt;
  if (kind == ParameterKind::linear_weight)
    return FlatMatrix{first, dims[1], dims[0], widest_block, widest_block, dims[1]};
  assert(context_.lanes <= widest_block);
  return filter_matrix(context_, dims, first);
}

void CpuLowRankPasses::add(std::span<float> a, std::span<const float> b) {
  assert(a.size() == b.size());
  parallel_parts(context_.threads, std::ssize(a), [=](std::int64_t first, std::int64_t last) {
    float* const into = a.data();
    const float* const from = b.data();
    for (std::int64_t i = first; i < last; ++i) into[i] += from[i];
  });
}

void CpuLowRankPasses::multiply(std::span<const float> values, const FlatMatrix& matrix, std::span<const float> start,
                                std::span<float> basis) {
  const std::int64_t rank = rank_of(basis, matrix.rows);
  parallel_for(context_.threads, matrix.groups(), [&](std::int64_t group) {
    with_lanes(matrix.rows_in(group), [&](auto rows) {
      const float* const elements = values.data() + matrix.at(group * matrix.lanes, 0);
      for (std::int64_t k = 0; k < rank; ++k) {
        const float* const factor = start.data() + matrix.at(k, 0);
        Lanes sums{};
        for (std::int64_t column = 0; column < matrix.columns; ++column) {
          const float* const m = elements + column * matrix.column_stride;
          const float f = factor[column * matrix.column_stride];
          for (std::int64_t lane = 0; lane < rows; ++lane) sums[static_cast<std::size_t>(lane)] += m[lane] * f;
        }
        std::copy_n(sums.begin(), static_cast<std::int64_t>(rows),
                    basis.data() + k * matrix.rows + group * matrix.lanes);
      }
    });
  });
}

void CpuLowRankPasses::multiply_transposed(std::span<const float> values, const FlatMatrix& matrix,
                                           std::span<const float> basis, std::span<float> factors) {
  constexpr std::int64_t piece = 64;  // columns whose sums stay in the first-level cache
  const std::int64_t rank = rank_of(basis, matrix.rows);
  parallel_for(context_.threads, ceil_div(matrix.columns, piece), [&](std::int64_t part) {
    const std::int64_t begin = part * piece;
    const std::int64_t columns = std::min(piece, matrix.columns - begin);
    for (std::int64_t k = 0; k < rank; ++k) {
      std::array<Lanes, piece> sums{};
      for (std::int64_t group = 0; group < matrix.groups(); ++group) {
        const float* const elements = values.data() + matrix.at(group * matrix.lanes, begin);
        const float* const b = basis.data() + k * matrix.rows + group * matrix.lanes;
        with_lanes(matrix.rows_in(group), [&](auto rows) {
          for (std::int64_t column = 0; column < columns; ++column) {
            const float* const m = elements + column * matrix.column_stride;
            Lanes& sum = sums[static_cast<std::size_t>(column)];
            for (std::int64_t lane = 0; lane < rows; ++lane) sum[static_cast<std::size_t>(lane)] += m[lane] * b[lane];
          }
        });
      }
      for (std::int64_t column = 0; column < columns; ++column) {
        float total = 0;
        for (const float sum : sums[static_cast<std::size_t>(column)]) total += sum;
        factors[static_cast<std::size_t>(k * matrix.columns + begin + column)] = total;
      }
    }
  });
}

void CpuLowRankPasses::replace(std::span<float> values, const FlatMatrix& matrix, std::span<const float> basis,
                               std::span<const float> factors, float share, std::span<float> residual) {
  const std::int64_t rank = rank_of(basis, matrix.rows);
  parallel_for(context_.threads, matrix.groups(), [&](std::int64_t group) {
    with_lanes(matrix.rows_in(group), [&](auto rows) {
      const std::int64_t place = matrix.at(group * matrix.lanes, 0);
      const float* const b = basis.data() + group * matrix.lanes;
      for (std::int64_t column = 0; column < matrix.columns; ++column) {
        float* const m = values.data() + place + column * matrix.column_stride;
        float* const left = residual.data() + place + column * matrix.column_stride;
        Lanes sums{};
        for (std::int64_t k = 0; k < rank; ++k) {
          const float f = factors[static_cast<std::size_t>(k * matrix.columns + column)];
          for (std::int64_t lane = 0; lane < rows; ++lane) {
            sums[static_cast<std::size_t>(lane)] += b[k * matrix.rows + lane] * f;
          }
        }
        for (std::int64_t lane = 0; lane < rows; ++lane) {
          const float sum = sums[static_cast<std::size_t>(lane)];
          left[lane] = m[lane] - share * sum;
          m[lane] = sum;
        }
      }
    });
  });
}

}  // namespace lockstep::cpu
