// Passes over weight matrices in host memory, on all threads of the rank. No result depends on the number of threads.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/flat/matrix_passes.hpp"

namespace lockstep::cpu {

// A convolution's weight: each group of B output channels is stored as [columns][B].
FlatMatrix filter_matrix(const CpuContext& context, std::span<const std::int64_t> dims, std::int64_t first);

class CpuMatrixPasses final : public MatrixPasses {
 public:
  // `context` outlives this.
  explicit CpuMatrixPasses(const CpuContext& context) : context_(context) {}

  FlatMatrix matrix_of(std::span<const std::int64_t> dims, std::int64_t first) const override {
    return filter_matrix(context_, dims, first);
  }
  void take_momentum(const Tensor& gradients, const FlatMatrix& matrix, const MatrixMomentum& momentum,
                     const StepRecord& record, const Tensor& velocity, const Tensor& direction) override;
  void add_polynomial(const Tensor& matrix, const std::array<float, 3>& factors, const Tensor& square) override;
  void put(const Tensor& wide, const FlatMatrix& matrix, const Tensor& values) override;

 private:
  const CpuContext& context_;
};

}  // namespace lockstep::cpu
