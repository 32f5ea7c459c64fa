// Bias, pooling, reshaping and addition over blocked feature maps; bias and loss over plain fp32 [n, c] tensors. These
// are the operations of Ops with the same names.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

void bias_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const Tensor& bias,
                  Activation activation, const Tensor& y);
void bias_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& y, const Tensor& dy,
                   Activation activation, const Tensor& dx, const Tensor& d_bias, Accumulate accumulate);

void max_pool_forward(const CpuContext& context, const VectorLoops& loops, const Pool2d& pool, const Tensor& x,
                      const Tensor& y, const Tensor& winner);
void max_pool_backward(const CpuContext& context, const VectorLoops& loops, const Pool2d& pool, const Tensor& dy,
                       const Tensor& winner, const Tensor& dx);
void blur_forward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& x,
                  const Tensor& y);
void blur_backward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& dy,
                   const Tensor& dx);
void mean_pool_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const Tensor& y);
void mean_pool_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& dy, const Tensor& dx);

void flatten_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const Tensor& y);
void flatten_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& dy, const Tensor& dx);
void mirror(const CpuContext& context, const Tensor& x, const Tensor& y);
void subsample_forward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& x,
                       const Tensor& y);
void subsample_backward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& dy,
                        const Tensor& dx);
void add(const CpuContext& context, const VectorLoops& loops, const Tensor& other, const Tensor& sum);

// For plain tensors.
void plain_bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y);
void plain_bias_backward(const CpuContext& context, const Tensor& y, const Tensor& dy, Activation activation,
                         const Tensor& dx, const Tensor& d_bias, Accumulate accumulate);

void softmax_cross_entropy(const CpuContext& context, const Tensor& logits, const Targets& targets, float smoothing,
                           float scale, const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate);

}  // namespace lockstep::cpu
