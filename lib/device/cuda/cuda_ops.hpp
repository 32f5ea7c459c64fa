// Ops on a GPU: convolutions by cuDNN, linear layers by cuBLASLt, everything else by own kernels.
#pragma once

#include <string>

#include "device/cuda/conv/convolution_engine.hpp"
#include "device/cuda/library_context.hpp"
#include "device/cuda/matmul.hpp"
#include "device/cuda/passes/kernel_ops.hpp"

namespace lockstep::cuda {

class CudaOps final : public KernelOps<CudaLaunch> {
 public:
  // All arguments outlive this.
  CudaOps(const CudaContext& context, const LibraryContext& libraries, const NarrowCopies& copies);

  void conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                    const Tensor& sums) override;
  void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                          Accumulate accumulate) override;
  void conv_backward_weight(const Conv2d& conv, const NormedMap& x, const NormedGradient& dy, const Tensor& dweight,
                            Accumulate accumulate) override;

  void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) override;
  void linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) override;
  void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate) override;

  bool measures_kernels() const override { return true; }
  std::string export_plan() const override;
  void import_plan(const std::string& plan) override;
  void suggest_plan(const std::string& plan) override;

 private:
  std::byte* operand_of(const Tensor& weight) const;
  // Memory for the duration of one operation, in the device's precision.
  Tensor features(const Shape& shape) const;

  const NarrowCopies& copies_;
  const LibraryContext& libraries_;
  ConvolutionEngine convolutions_;
  Matmul matmul_;
};

}  // namespace lockstep::cuda
