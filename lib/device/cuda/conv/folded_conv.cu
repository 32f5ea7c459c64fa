#include "device/cuda/conv/fold_kernels.hpp"
#include "device/cuda/conv/folded_conv.hpp"
#include "device/cuda/launch/cuda_launch.cuh"
#include "device/cuda/with_dtype.hpp"

namespace lockstep::cuda {

bool can_fold(const ConvProblem& problem) {
  const bool has_weight = problem.direction != Direction::backward_data;
  const Conv2d& conv = problem.conv;
  const bool is_square = conv.kernel.is_square() && conv.padding.is_square();
  return has_weight && problem.input == Layout::images && problem.precision != DType::f32 && conv.stride == fold &&
         is_square && conv.kernel.height >= fold && conv.in_channels <= fold_channels;
}

ConvProblem folded(const ConvProblem& problem) {
  const Conv2d& conv = problem.conv;
  const std::int64_t kernel = (conv.kernel.height + fold - 1) / fold;
  ConvProblem blocks = problem;
  blocks.conv = {.in_channels = fold * fold * fold_channels, .out_channels = conv.out_channels, .kernel = kernel};
  blocks.h = conv.rows().out_size(problem.h) + kernel - 1;
  blocks.w = conv.columns().out_size(problem.w) + kernel - 1;
  blocks.input = Layout::features;
  return blocks;
}

void fold_pixels(const CudaLaunch& launch, const Tensor& from, std::int64_t padding, const Tensor& to) {
  const FeatureMap blocks(to);
  launch(blocks.vectors(), FoldPixels{FeatureMap(from), padding, blocks});
}

void unfold_weight(const CudaLaunch& launch, const Tensor& from, const Tensor& weight, Accumulate accumulate) {
  const FeatureMap to(weight);
  with_dtype(from.dtype(), [&](auto dtype) {
    launch(to.vectors(), UnfoldWeight<dtype.value>{FeatureMap(from), to, accumulate});
  });
}

}  // namespace lockstep::cuda
