// A convolution of images with stride 2 as one with stride 1 on blocks of 2x2 pixels (fold_kernels.hpp). Tensor cores
// multiply vectors of eight channels, of which an image fills three: ResNet-50's first convolution multiplies 392
// values for each result instead of 147, and cuDNN has no kernel for it that Hopper runs fast. Folded, it multiplies
// 256.
#pragma once

#include "device/conv_problem.hpp"
#include "device/cuda/launch/launch.hpp"

namespace lockstep::cuda {

// Images in half precision with at most four channels, square kernel and padding, stride 2, forward or backward-weight.
bool can_fold(const ConvProblem& problem);

// The same convolution on blocks.
ConvProblem folded(const ConvProblem& problem);

// `from`: half precision with at most four channels; `to`: features [n, h', w', 16] or a weight [out, k', k', 16].
// Block (0, 0) starts `padding` pixels before `from`. Stream-ordered.
void fold_pixels(const CudaLaunch& launch, const Tensor& from, std::int64_t padding, const Tensor& to);

// weight (+)= `from`. Both as features: [out, k', k', 16] in half precision, [out, k, k, in] in fp32. Stream-ordered.
void unfold_weight(const CudaLaunch& launch, const Tensor& from, const Tensor& weight, Accumulate accumulate);

}  // namespace lockstep::cuda
