// Low-rank products in host memory, on all threads of the rank. Plain loops without fused multiply-add, compiled for
// every processor alike.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/flat/low_rank.hpp"

namespace lockstep::cpu {

class CpuLowRankPasses final : public LowRankPasses {
 public:
  // `context` outlives this.
  explicit CpuLowRankPasses(const CpuContext& context) : context_(context) {}

  std::optional<FlatMatrix> matrix_of(ParameterKind kind, std::span<const std::int64_t> dims,
                                      std::int64_t first) const override;
  void add(std::span<float> a, std::span<const float> b) override;
  void multiply(std::span<const float> values, const FlatMatrix& matrix, std::span<const float> start,
                std::span<float> basis) override;
  void multiply_transposed(std::span<const float> values, const FlatMatrix& matrix, std::span<const float> basis,
                           std::span<float> factors) override;
  void replace(std::span<float> values, const FlatMatrix& matrix, std::span<const float> basis,
               std::span<const float> factors, float share, std::span<float> residual) override;

 private:
  const CpuContext& context_;
};

}  // namespace lockstep::cpu
