#include "device/cpu/cpu_ops.hpp"

#include <cassert>

#include "device/cpu/instruction_sets/loops.hpp"
#include "device/cpu/norm/norm.hpp"
#include "device/cpu/passes/passes.hpp"

namespace lockstep::cpu {

CpuOps::CpuOps(const CpuContext& context, InstructionSet set)
    : context_(context),
      loops_(loops_of(set).vectors.of(context.precision)),
      convolutions_(context, set),
      fused_(context, loops_, convolutions_),
      matmul_(context, set) {
  assert(loops_.lanes == context.lanes);
}

void CpuOps::conv_forward(const Conv2d& conv, const Tensor& x, const Tensor& weight, const Tensor& y) {
  convolutions_.conv_forward(conv, x, weight, y);
}

void CpuOps::conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx) {
  convolutions_.conv_backward_data(conv, dy, weight, dx);
}

void CpuOps::conv_backward_weight(const Conv2d& conv, const Tensor& x, const Tensor& dy, const Tensor& dweight,
                                  Accumulate accumulate) {
  convolutions_.conv_backward_weight(conv, x, dy, dweight, {.accumulate = accumulate});
}

void CpuOps::norm_forward(const Tensor& x, const NormWeights& weights, const Tensor& residual, Activation activation,
                          const Tensor& y, const NormSaved& saved, const Tensor& batch_mean,
                          const Tensor& batch_variance, float statistics_scale, Accumulate accumulate) {
  cpu::norm_forward(context_, loops_, x, {weights, saved, batch_mean, batch_variance, statistics_scale, accumulate},
                    residual, activation, y);
}

void CpuOps::norm_infer(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                        const Tensor& running_variance, const Tensor& residual, Activation activation,
                        const Tensor& y) {
  cpu::norm_infer(context_, loops_, x, weights, running_mean, running_variance, residual, activation, y);
}

void CpuOps::norm_backward(const Tensor& x, const Tensor& y, const Tensor& dy, const NormWeights& weights,
                           Activation activation, const NormSaved& saved, const Tensor& dx, const Tensor& d_residual,
                           const Tensor& d_scale, const Tensor& d_shift, Accumulate accumulate) {
  cpu::norm_backward(context_, loops_, x, y, dy, weights, activation, saved,
                     {dx, d_residual, d_scale, d_shift, accumulate});
}

void CpuOps::bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y) {
  if (x.layout() == Layout::plain) {
    plain_bias_forward(x, bias, activation, y);
  } else {
    cpu::bias_forward(context_, loops_, x, bias, activation, y);
  }
}

void CpuOps::bias_backward(const Tensor& y, const Tensor& dy, Activation activation, const Tensor& dx,
                           const Tensor& d_bias, Accumulate accumulate) {
  if (dy.layout() == Layout::plain) {
    plain_bias_backward(context_, y, dy, activation, dx, d_bias, accumulate);
  } else {
    cpu::bias_backward(context_, loops_, y, dy, activation, dx, d_bias, accumulate);
  }
}

void CpuOps::max_pool_forward(const Pool2d& pool, const Tensor& x, const Tensor& y, const Tensor& winner) {
  cpu::max_pool_forward(context_, loops_, pool, x, y, winner);
}

void CpuOps::max_pool_backward(const Pool2d& pool, const Tensor& dy, const Tensor& winner, const Tensor& dx) {
  cpu::max_pool_backward(context_, loops_, pool, dy, winner, dx);
}

void CpuOps::mean_pool_forward(const Tensor& x, const Tensor& y) { cpu::mean_pool_forward(context_, loops_, x, y); }

void CpuOps::mean_pool_backward(const Tensor& dy, const Tensor& dx) {
  cpu::mean_pool_backward(context_, loops_, dy, dx);
}

void CpuOps::flatten_forward(const Tensor& x, const Tensor& y) { cpu::flatten_forward(context_, loops_, x, y); }

void CpuOps::flatten_backward(const Tensor& dy, const Tensor& dx) { cpu::flatten_backward(context_, loops_, dy, dx); }

void CpuOps::subsample_forward(std::int64_t stride, const Tensor& x, const Tensor& y) {
  cpu::subsample_forward(context_, loops_, stride, x, y);
}

void CpuOps::subsample_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) {
  cpu::subsample_backward(context_, loops_, stride, dy, dx);
}

void CpuOps::add(const Tensor& other, const Tensor& sum) { cpu::add(context_, loops_, other, sum); }

void CpuOps::linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) {
  matmul_.linear_forward(x, weight, y);
}

void CpuOps::linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) {
  matmul_.linear_backward_data(dy, weight, dx);
}

void CpuOps::linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate) {
  matmul_.linear_backward_weight(x, dy, dweight, accumulate);
}

void CpuOps::softmax_cross_entropy(const Tensor& logits, const Tensor& labels, float smoothing, float scale,
                                   const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate) {
  cpu::softmax_cross_entropy(context_, logits, labels, smoothing, scale, gradient, sums, accumulate);
}

}  // namespace lockstep::cpu
