// Which cut Winograd takes: a fixed function of the shape.
#include "device/cpu/cpu_layout.hpp"
#include "device/cpu/winograd_kernels.hpp"

namespace lockstep::cpu {
namespace {

std::unique_ptr<ConvKernel> make_pass(const WinogradShape& shape) { return make_winograd_by_tiles(shape, 24); }

std::unique_ptr<ConvKernel> make_gradient(const WinogradShape& shape) {
  return make_winograd_gradient_by_pieces(shape, {512, 48});
}

}  // namespace

std::unique_ptr<ConvKernel> make_winograd(const ConvProblem& problem, const KernelTarget& target) {
  const Conv2d& conv = problem.conv;
  // Weights of fewer input channels are stored without blocks of them.
  const bool fits = conv.kernel == 3 && conv.stride == 1 && conv.padding <= 2 && problem.input == Layout::features &&
                    conv.in_channels > most_image_channels;
  if (!fits) return nullptr;
  const WinogradShape shape(problem, target);
  return problem.direction == Direction::backward_weight ? make_gradient(shape) : make_pass(shape);
}

}  // namespace lockstep::cpu
