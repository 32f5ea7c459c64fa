// Bias and loss over plain [n, c] tensors, fp32. The operations of Ops by the same names.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

void plain_bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y);
void plain_bias_backward(const CpuContext& context, const Tensor& y, const Tensor& dy, Activation activation,
                         const Tensor& dx, const Tensor& d_bias, Accumulate accumulate);

void softmax_cross_entropy(const CpuContext& context, const Tensor& logits, const Tensor& labels, float smoothing,
                           float scale, const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate);

}  // namespace lockstep::cpu
