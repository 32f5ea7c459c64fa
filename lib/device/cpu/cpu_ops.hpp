// Ops on the CPU: convolutions and matrix products by their engines, everything else by the vector loops.
#pragma once

#include <string>

#include "device/cpu/conv/convolution_engine.hpp"
#include "device/cpu/cpu_context.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/cpu/products/matmul.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

class CpuOps final : public Ops {
 public:
  // Uses the loops of `set`, which this processor must support; its lanes are the context's.
  CpuOps(const CpuContext& context, InstructionSet set);

  void conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                    const Tensor& sums) override;
  void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                          Accumulate accumulate) override;
  void conv_backward_weight(const Conv2d& conv, const NormedMap& x, const NormedGradient& dy, const Tensor& dweight,
                            Accumulate accumulate) override;

  void norm_forward(const Tensor& x, const Tensor& sums, const BatchNorm& norm, const Tensor& residual,
                    Activation activation, const Tensor& y) override;
  void norm_infer(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                  const Tensor& running_variance, const Tensor& residual, Activation activation,
                  const Tensor& y) override;
  void norm_backward(const Tensor& x, const Tensor& y, const Tensor& dy, const NormWeights& weights,
                     Activation activation, const NormSaved& saved, const Tensor& dx, const Tensor& d_residual,
                     const Tensor& d_scale, const Tensor& d_shift, Accumulate accumulate) override;

  bool norms_apply_gelu() const override { return true; }
  void bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y) override;
  void bias_backward(const Tensor& y, const Tensor& dy, Activation activation, const Tensor& dx, const Tensor& d_bias,
                     Accumulate accumulate) override;

  void activate_forward(const Curve& curve, const Tensor& x, const Tensor& y) override;
  void activate_backward(const Curve& curve, const Tensor& saved, const Tensor& dy, const Tensor& dx) override;
  void drop(const Dropout& dropout, const Tensor& x, const Tensor& y) override;
  void add(const Tensor& a, const Tensor& b, const Tensor& y) override;
  void copy(const Tensor& x, const Tensor& y) override;

  void max_pool_forward(const Pool2d& pool, const Tensor& x, const Tensor& y, const Tensor& winner) override;
  void max_pool_backward(const Pool2d& pool, const Tensor& dy, const Tensor& winner, const Tensor& dx) override;
  void average_pool_forward(const Pool2d& pool, bool counts_padding, const Tensor& x, const Tensor& y) override;
  void average_pool_backward(const Pool2d& pool, bool counts_padding, const Tensor& dy, const Tensor& dx) override;
  void blur_forward(std::int64_t stride, const Tensor& x, const Tensor& y) override;
  void blur_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) override;
  void mean_pool_forward(const Tensor& x, const Tensor& y) override;
  void mean_pool_backward(const Tensor& dy, const Tensor& dx) override;

  void flatten_forward(const Tensor& x, const Tensor& y) override;
  void flatten_backward(const Tensor& dy, const Tensor& dx) override;
  void concat_forward(std::span<const Tensor> x, const Tensor& y) override;
  void concat_backward(const Tensor& dy, std::span<const Tensor> dx) override;
  void mirror(const Tensor& x, const Tensor& y) override;
  void shift(std::int64_t rows, std::int64_t columns, const Tensor& x, const Tensor& y) override;
  void subsample_forward(std::int64_t stride, const Tensor& x, const Tensor& y) override;
  void subsample_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) override;

  void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) override;
  void linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) override;
  void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate) override;

  void softmax_cross_entropy(const Tensor& logits, const Targets& targets, float smoothing, float scale,
                             const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate) override;

  bool measures_kernels() const override { return false; }
  std::string export_plan() const override { return {}; }
  void import_plan(const std::string&) override {}
  void suggest_plan(const std::string&) override {}

  std::int64_t sums_bytes(std::int64_t channels) const override;
  TensorForm form_after_norm(const Tensor& x) const override;
  NormedMap norm_forward_deferred(const Tensor& x, const Tensor& sums, const BatchNorm& norm, Activation activation,
                                  const Tensor& rows) override;
  NormedMap norm_infer_deferred(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                                const Tensor& running_variance, Activation activation, const Tensor& rows) override;
  void conv_backward_data_norm(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const PreviousNorm& front,
                               const Tensor& dz, Accumulate accumulate) override;
  void norm_backward_deferred(const NormedGradient& dy) override;
  bool fuses_norm_reductions() const override { return true; }

 private:
  const CpuContext& context_;
  const VectorLoops& loops_;  // for the context's precision
  ConvolutionEngine convolutions_;
  Matmul matmul_;
};

}  // namespace lockstep::cpu
