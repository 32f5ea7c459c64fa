// The part of Ops that own kernels compute on a GPU: all but convolutions, linear layers and plans.
#pragma once

#include "device/cuda/cuda_context.hpp"
#include "device/cuda/launch/launch.hpp"
#include "device/ops.hpp"

namespace lockstep::cuda {

// `Launch` runs the kernels' loops, see launch.hpp. Members are defined in kernel_ops_definitions.hpp.
template <typename Launch>
class KernelOps : public Ops {
 public:
  // `context` outlives this.
  KernelOps(const CudaContext& context, const Launch& launch) : context_(context), launch_(launch) {}

  void norm_forward(const Tensor& x, const Tensor& sums, const BatchNorm& norm, const Tensor& residual,
                    Activation activation, const Tensor& y) override;
  void norm_infer(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                  const Tensor& running_variance, const Tensor& residual, Activation activation,
                  const Tensor& y) override;
  void norm_backward(const Tensor& x, const Tensor& y, const Tensor& dy, const NormWeights& weights,
                     Activation activation, const NormSaved& saved, const Tensor& dx, const Tensor& d_residual,
                     const Tensor& d_scale, const Tensor& d_shift, Accumulate accumulate) override;

  std::int64_t relu_mask_bytes(const Shape& y) const override;

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

  void softmax_cross_entropy(const Tensor& logits, const Targets& targets, float smoothing, float scale,
                             const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate) override;

 protected:
  const CudaContext& context() const { return context_; }
  const Launch& launch() const { return launch_; }

 private:
  const CudaContext& context_;
  Launch launch_;
};

extern template class KernelOps<CudaLaunch>;

}  // namespace lockstep::cuda
