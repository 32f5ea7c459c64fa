#include "device/cuda/cuda_ops.hpp"

#include <array>

#include "base/error.hpp"
#include "device/cuda/conv/folded_conv.hpp"
#include "device/cuda/half_precision.hpp"
#include "device/cuda/layout/cuda_layout.hpp"
#include "device/cuda/operands.hpp"

namespace lockstep::cuda {
namespace {

// The stored form of a convolution's weight (cuda_layout.hpp), as features.
Shape weight_shape(const Conv2d& conv) {
  return {padded(conv.out_channels), conv.kernel.height, conv.kernel.width, conv.in_channels};
}

Tensor view_of(std::byte* data, const Shape& shape, DType dtype) {
  return {data, storage_count(shape, Layout::features) * size_of(dtype), shape, dtype, Layout::features};
}

}  // namespace

CudaOps::CudaOps(const CudaContext& context, const LibraryContext& libraries, const NarrowCopies& copies)
    : KernelOps(context, CudaLaunch(libraries.stream)),
      copies_(copies),
      libraries_(libraries),
      convolutions_(libraries),
      matmul_(libraries) {}

Tensor CudaOps::features(const Shape& shape) const {
  const DType dtype = context().precision;
  const std::int64_t bytes = storage_count(shape, Layout::features) * size_of(dtype);
  return {libraries_.arena.allocate(bytes), shape, dtype, Layout::features};
}

std::byte* CudaOps::operand_of(const Tensor& weight) const {
  if (context().precision == DType::f32) return weight.data();
  std::byte* const narrow = copies_.narrow_copy(weight);
  // Created by Device::store().
  require(narrow != nullptr, Failure::other,
          "a weight of {} elements has no copy in {}. This is a defect of this program.", weight.shape().count(),
          name_of(context().precision));
  return narrow;
}

void CudaOps::conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                           const Tensor& sums) {
  require_not_deferred(!x.is_deferred() && !sums);
  const ConvProblem problem = problem_of(Direction::forward, conv, x.x, y);
  if (!can_fold(problem)) {
    convolutions_.run(problem, std::array{x.x.data(), operand_of(weight), y.data()});
    return;
  }
  const ConvProblem blocks = folded(problem);
  const Tensor images = features({blocks.n, blocks.h, blocks.w, blocks.conv.in_channels});
  fold_pixels(launch(), x.x, conv.padding.height, images);
  const Tensor weights = features(weight_shape(blocks.conv));
  fold_pixels(launch(), view_of(operand_of(weight), weight_shape(conv), problem.precision), 0, weights);
  convolutions_.run(blocks, std::array{images.data(), weights.data(), y.data()});
}

void CudaOps::conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                                 Accumulate accumulate) {
  ConvProblem problem = problem_of(Direction::backward_data, conv, dx, dy);
  problem.accumulate = accumulate;
  convolutions_.run(problem, std::array{dy.data(), operand_of(weight), dx.data()});
}

void CudaOps::conv_backward_weight(const Conv2d& conv, const NormedMap& normed_x, const NormedGradient& normed_dy,
                                   const Tensor& dweight, Accumulate accumulate) {
  require_not_deferred(!normed_x.is_deferred() && !normed_dy.is_deferred());
  const Tensor& x = normed_x.x;
  const Tensor& dy = normed_dy.dy;
  const ConvProblem problem = problem_of(Direction::backward_weight, conv, x, dy);
  if (can_fold(problem)) {
    const ConvProblem blocks = folded(problem);
    const Tensor images = features({blocks.n, blocks.h, blocks.w, blocks.conv.in_channels});
    fold_pixels(launch(), x, conv.padding.height, images);
    const Tensor part = features(weight_shape(blocks.conv));
    convolutions_.run(blocks, std::array{images.data(), dy.data(), part.data()});
    unfold_weight(launch(), part, view_of(dweight.data(), weight_shape(conv), DType::f32), accumulate);
    return;
  }
  if (problem.precision == DType::f32 && accumulate == Accumulate::overwrite) {
    convolutions_.run(problem, std::array{x.data(), dy.data(), dweight.data()});
    return;
  }
  const Tensor part = features(weight_shape(conv));
  convolutions_.run(problem, std::array{x.data(), dy.data(), part.data()});
  widen_into(launch(), part, dweight, accumulate);
}

void CudaOps::linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) {
  matmul_.linear_forward(x, weight, y);
}

void CudaOps::linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) {
  matmul_.linear_backward_data(dy, weight, dx);
}

void CudaOps::linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate) {
  matmul_.linear_backward_weight(x, dy, dweight, accumulate);
}

std::string CudaOps::export_plan() const { return convolutions_.export_plan(); }

void CudaOps::import_plan(const std::string& plan) { convolutions_.import_plan(plan); }

void CudaOps::suggest_plan(const std::string& plan) { convolutions_.suggest_plan(plan); }

}  // namespace lockstep::cuda
