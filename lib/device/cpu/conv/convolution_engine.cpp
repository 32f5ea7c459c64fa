#include "device/cpu/conv/convolution_engine.hpp"

#include <cassert>

#include "base/log.hpp"
#include "device/cpu/conv/direct/direct_pixels.hpp"
#include "device/cpu/conv/direct/direct_weights.hpp"
#include "device/cpu/layout/cpu_layout.hpp"

namespace lockstep::cpu {
namespace {

ConvProblem problem_of(Direction direction, const Conv2d& conv, const Tensor& x, const Tensor& y) {
  assert(x.layout() == Layout::features || (x.layout() == Layout::images && x.shape()[3] <= max_image_channels));
  assert(x.shape()[3] == conv.in_channels && y.shape()[3] == conv.out_channels);
  assert(y.shape()[1] == conv.rows().out_size(x.shape()[1]) && y.shape()[2] == conv.columns().out_size(x.shape()[2]));
  return {direction, conv, x.shape()[0], x.shape()[1], x.shape()[2], x.layout(), y.dtype()};
}

}  // namespace

std::unique_ptr<ConvKernel> make_direct(const ConvProblem& problem, const KernelTarget& target) {
  if (problem.direction == Direction::backward_weight) return std::make_unique<DirectWeights>(problem, target);
  return std::make_unique<DirectPixels>(problem, target);
}

std::unique_ptr<ConvKernel> make_kernel(const ConvProblem& problem, const KernelTarget& target) {
  // At stride 2, direct products of pairs save more than Winograd in fp32. AMX tiles of pairs save more at any stride.
  const bool is_faster_direct =
      multiplies_pairs(problem, target) &&
      (multiplies_bf16_tiles(target.set) || (problem.conv.stride != 1 && !winograd_takes_pairs(problem, target)));
  const bool takes_winograd = winograd_pays(problem) && !is_faster_direct;
  return takes_winograd ? make_winograd(problem, target) : make_direct(problem, target);
}

ConvolutionEngine::ConvolutionEngine(const CpuContext& context, InstructionSet set)
    : context_(context), target_{set, context.threads} {}

void ConvolutionEngine::conv_forward(const Conv2d& conv, const Tensor& x, const Tensor& weight, const Tensor& y,
                                     ConvCall call) {
  call.operands = {x.data(), weight.data(), y.data()};
  run(problem_of(Direction::forward, conv, x, y), call);
}

void ConvolutionEngine::conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                                           ConvCall call) {
  call.operands = {dy.data(), weight.data(), dx.data()};
  run(problem_of(Direction::backward_data, conv, dx, dy), call);
}

void ConvolutionEngine::conv_backward_weight(const Conv2d& conv, const Tensor& x, const Tensor& dy,
                                             const Tensor& dweight, ConvCall call) {
  call.operands = {x.data(), dy.data(), dweight.data()};
  run(problem_of(Direction::backward_weight, conv, x, dy), call);
}

void ConvolutionEngine::run(const ConvProblem& problem, const ConvCall& call) {
  auto found = kernels_.find(problem);
  if (found == kernels_.end()) {
    const bool is_direct = context_.convolutions == Convolutions::direct;
    found = kernels_.emplace(problem, is_direct ? make_direct(problem, target_) : make_kernel(problem, target_)).first;
    if (context_.verbosity == Verbosity::verbose) {
      log::info("convolution {}: {}", problem.text(), found->second->name());
    }
  }
  ConvKernel& kernel = *found->second;
  const Tensor memory = scratch_tensor(context_.arena, kernel.scratch_bytes());
  kernel.run(call, memory.data());
}

}  // namespace lockstep::cpu
