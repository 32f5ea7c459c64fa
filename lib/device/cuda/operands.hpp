// Checks of what is passed to cuDNN and cuBLAS, which read and write beyond operands that do not fit.
#pragma once

#include "device/conv_problem.hpp"
#include "device/tensor.hpp"

namespace lockstep::cuda {

// A convolution from `x` to `y`, or of their gradients. Throws Error if sizes or types do not fit.
ConvProblem problem_of(Direction direction, const Conv2d& conv, const Tensor& x, const Tensor& y);

// Throws Error unless all are f32 and fit: x [n, in], y [n, out], and a weight or its gradient for them.
void require_linear(const Tensor& x, const Tensor& weight, const Tensor& y);

// Throws Error unless `is_plain`: cuDNN applies no deferred norm.
void require_not_deferred(bool is_plain);

}  // namespace lockstep::cuda
