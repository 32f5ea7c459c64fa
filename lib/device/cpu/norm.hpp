// Batch norm with residual and activation over blocked feature maps. The operations of Ops by the same names.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/vector_loops.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

// Where the statistics of a batch go besides `saved`.
struct BatchStatistics {
  Tensor mean;
  Tensor variance;
  float scale;
  Accumulate accumulate;
};

void norm_forward(const CpuContext& context, const VectorLoops& loops, const Tensor& x, const NormWeights& weights,
                  const Tensor& residual, Activation activation, const Tensor& y, const NormSaved& saved,
                  const BatchStatistics& statistics);

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

}  // namespace lockstep::cpu
