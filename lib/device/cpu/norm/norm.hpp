// Batch norm with residual and activation over blocked feature maps: the operations of Ops by the same names, and the
// passes of a norm whose table is already there.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/norm/norm_table.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

void norm_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const BatchNorm& norm,
                  const Tensor& residual, Activation activation, const Tensor& y);

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

// The table of a norm by running statistics.
void set_running_norm(const NormWeights& weights, const Tensor& mean, const Tensor& variance, const NormTable& table);
// y = activation(norm(x) (+ residual)).
void apply_norm(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const NormTable& table,
                const Tensor& residual, Activation activation, const Tensor& y);
// dx from dz, the gradient after the activation, which it may alias.
void apply_norm_gradient(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const NormTable& table,
                         const Tensor& dz, const Tensor& dx);

}  // namespace lockstep::cpu
