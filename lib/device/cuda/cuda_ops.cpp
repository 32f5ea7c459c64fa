#include "device/cuda/cuda_ops.hpp"

#include <array>

#include "base/error.hpp"
#include "device/cuda/half_precision.hpp"
#include "device/cuda/layout/cuda_layout.hpp"
#include "device/cuda/operands.hpp"

namespace lockstep::cuda {

CudaOps::CudaOps(const CudaContext& context, const LibraryContext& libraries, const NarrowCopies& copies)
    : KernelOps(context, CudaLaunch(libraries.stream)),
      copies_(copies),
      libraries_(libraries),
      convolutions_(libraries),
      matmul_(libraries) {}

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
  convolutions_.run(problem_of(Direction::forward, conv, x.x, y), std::array{x.x.data(), operand_of(weight), y.data()});
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
  if (problem.precision == DType::f32 && accumulate == Accumulate::overwrite) {
    convolutions_.run(problem, std::array{x.data(), dy.data(), dweight.data()});
    return;
  }
  const std::array dims{conv.out_channels, conv.in_channels, conv.kernel, conv.kernel};
  const std::int64_t count = storage_count(ParameterKind::conv_weight, dims);
  const Tensor memory = scratch_bytes(libraries_.arena, count * size_of(problem.precision));
  const Tensor part(memory.data(), count * size_of(problem.precision), Shape{count}, problem.precision, Layout::plain);
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
