// Elementwise operations, pooling and reshaping over blocked feature maps; elementwise operations and loss over plain
// fp32 [n, c] tensors. These are the operations of Ops with the same names.
#pragma once

#include <span>

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
void average_pool_forward(const CpuContext& context, const VectorLoops& loops, const Pool2d& pool, bool counts_padding,
                          const Tensor& x, const Tensor& y);
void average_pool_backward(const CpuContext& context, const VectorLoops& loops, const Pool2d& pool, bool counts_padding,
                           const Tensor& dy, const Tensor& dx);
void blur_forward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& x,
                  const Tensor& y);
void blur_backward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& dy,
                   const Tensor& dx);
void mean_pool_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const Tensor& y);
void mean_pool_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& dy, const Tensor& dx);

void flatten_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const Tensor& y);
void flatten_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& dy, const Tensor& dx);
void mirror(const CpuContext& context, const Tensor& x, const Tensor& y);
void shift(const CpuContext& context, std::int64_t rows, std::int64_t columns, const Tensor& x, const Tensor& y);
void subsample_forward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& x,
                       const Tensor& y);
void subsample_backward(const CpuContext& context, const VectorLoops& loops, std::int64_t stride, const Tensor& dy,
                        const Tensor& dx);
void concat_forward(const CpuContext& context, const VectorLoops& loops, std::span<const Tensor> x, const Tensor& y);
void concat_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& dy, std::span<const Tensor> dx);
void copy(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const Tensor& y);
void activate_forward(const CpuContext& context, const VectorLoops& loops, const Curve& curve, const Tensor& x,
                      const Tensor& y);
void activate_backward(const CpuContext& context, const VectorLoops& loops, const Curve& curve, const Tensor& saved,
                       const Tensor& dy, const Tensor& dx);
void add(const CpuContext& context, const VectorLoops& loops, const Tensor& a, const Tensor& b, const Tensor& y);

// For plain tensors.
void plain_bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y);
void plain_bias_backward(const CpuContext& context, const Tensor& y, const Tensor& dy, Activation activation,
                         const Tensor& dx, const Tensor& d_bias, Accumulate accumulate);
void plain_activate_forward(const Curve& curve, const Tensor& x, const Tensor& y);
void plain_activate_backward(const Curve& curve, const Tensor& saved, const Tensor& dy, const Tensor& dx);
void plain_add(const Tensor& a, const Tensor& b, const Tensor& y);
void plain_copy(const Tensor& x, const Tensor& y);

void softmax_cross_entropy(const CpuContext& context, const Tensor& logits, const Targets& targets, float smoothing,
                           float scale, const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate);

}  // namespace lockstep::cpu
