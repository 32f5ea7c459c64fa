// Convolutions on the CPU by own kernels. The kernel is a fixed function of the shape and the instruction set: nothing
// is timed, and two processes always compute the same.
#pragma once

#include <map>
#include <memory>

#include "device/conv_problem.hpp"
#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/cpu_context.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

// The kernel that the rule selects: Winograd if it pays, direct otherwise.
std::unique_ptr<ConvKernel> make_kernel(const ConvProblem& problem, const KernelTarget& target);

class ConvolutionEngine {
 public:
  // `set` must run on this processor; its lanes are the context's. `context` outlives this.
  ConvolutionEngine(const CpuContext& context, InstructionSet set);

  // Tensors as in Ops, in the layouts of cpu_context.hpp. `call` holds the optional work of a kernel; its operands are
  // set here. Blocking. After the first call for a shape, nothing is allocated outside the arena.
  void conv_forward(const Conv2d& conv, const Tensor& x, const Tensor& weight, const Tensor& y, ConvCall call = {});
  void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                          ConvCall call = {});
  void conv_backward_weight(const Conv2d& conv, const Tensor& x, const Tensor& dy, const Tensor& dweight,
                            ConvCall call);

 private:
  void run(const ConvProblem& problem, const ConvCall& call);

  const CpuContext& context_;
  KernelTarget target_;
  std::map<ConvProblem, std::unique_ptr<ConvKernel>> kernels_;
};

}  // namespace lockstep::cpu
