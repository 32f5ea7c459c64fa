// The fused operations of the CPU: norms inside the convolutions' own passes over their maps.
#pragma once

#include "device/cpu/conv/convolution_engine.hpp"
#include "device/cpu/cpu_context.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/fused_ops.hpp"

namespace lockstep::cpu {

class CpuFusedOps final : public FusedOps {
 public:
  // Everything outlives this.
  CpuFusedOps(const CpuContext& context, const VectorLoops& loops, ConvolutionEngine& convolutions)
      : context_(context), loops_(loops), convolutions_(convolutions) {}

  void conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y) override;
  void conv_norm_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                         const BatchNorm& norm, const Tensor& rows) override;
  void norm_rows(const NormWeights& weights, const Tensor& running_mean, const Tensor& running_variance,
                 const Tensor& rows) override;
  void norm_apply(const NormedMap& x, const Tensor& residual, const Tensor& y) override;

  void conv_backward_weight(const Conv2d& conv, const NormedMap& x, const Tensor& dy, const Tensor& dweight,
                            Accumulate accumulate) override;
  void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                          Accumulate accumulate) override;
  void conv_norm_backward(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const NormedMap& x,
                          const NormGradient& gradient, const Tensor& dz) override;
  void norm_gradient(const NormedMap& x, const Tensor& dz, const Tensor& dx) override;

 private:
  const CpuContext& context_;
  const VectorLoops& loops_;
  ConvolutionEngine& convolutions_;
};

}  // namespace lockstep::cpu
