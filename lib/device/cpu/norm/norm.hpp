// Batch norm with residual and activation over blocked feature maps: the operations of Ops with the same names, and the
// steps of a deferred batch norm.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/norm/norm_table.hpp"
#include "device/cpu/norm/piece_sums.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

void norm_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const BatchNorm& norm,
                  const Tensor& residual, Activation activation, const Tensor& y);
// The same, from the sums of x and x * x that the convolution left.
void norm_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const OutputSums& sums,
                  const BatchNorm& norm, const Tensor& residual, Activation activation, const Tensor& y);

// y = activation(scale * (x - mean) / sqrt(variance + epsilon) + shift (+ residual)).
void norm_infer(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const NormWeights& weights,
                const Tensor& mean, const Tensor& variance, const Tensor& residual, Activation activation,
                const Tensor& y);

struct NormGradients {
  Tensor dx;
  Tensor d_residual;  // may be empty
  Tensor d_scale;
  Tensor d_shift;
  Accumulate accumulate;
};

void norm_backward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const Tensor& y,
                   const Tensor& dy, const NormWeights& weights, Activation activation, const NormSaved& saved,
                   const NormGradients& gradients);

// The table of a norm from batch statistics: from the sums of y and y * y, or by a pass over x.
void set_batch_norm(const CpuContext& context, const Tensor& x, const OutputSums& sums, const BatchNorm& norm,
                    const NormTable& table);
void set_batch_norm(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const BatchNorm& norm,
                    const NormTable& table);
// The table of a norm from running statistics.
void set_running_norm(const NormWeights& weights, const Tensor& mean, const Tensor& variance, const NormTable& table);
// y = activation(norm(x) (+ residual)).
void apply_norm(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const NormTable& table,
                const Tensor& residual, Activation activation, const Tensor& y);
// The gradients of a norm's scale and shift, and the table for the deferred batch-norm backward, from the sums of dz
// and dz * (x - mean).
void set_norm_gradient(const CpuContext& context, const Tensor& x, const OutputSums& sums, const NormGradient& gradient,
                       const NormTable& table);
// The operation of Ops of this name, with the table of dy.x.
void norm_backward_deferred(const CpuContext& context, const VectorLoops& loops, const NormedGradient& dy,
                            const NormTable& table);

}  // namespace lockstep::cpu
