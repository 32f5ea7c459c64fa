#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/direct/direct_pixels.hpp"
#include "device/cpu/conv/direct/direct_weights.hpp"

namespace lockstep::cpu {

std::unique_ptr<ConvKernel> make_direct(const ConvProblem& problem, const KernelTarget& target) {
  if (problem.direction == Direction::backward_weight) return std::make_unique<DirectWeights>(problem, target);
  return std::make_unique<DirectPixels>(problem, target);
}

}  // namespace lockstep::cpu
