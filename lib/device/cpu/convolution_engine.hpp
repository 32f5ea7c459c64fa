// Convolutions on the CPU: for each layer shape and direction the fastest of the kernels at hand, found by trying them.
//
// The first call for a shape runs every candidate on the caller's own operands (a few milliseconds each) and keeps the
// fastest; later calls allocate nothing outside the arena. A plan says which kernel was chosen for what, so that other
// ranks, and later runs, compute with the same ones.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include "device/conv_problem.hpp"
#include "device/cpu/cpu_context.hpp"
#include "device/cpu/onednn_adapter.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

class ConvolutionEngine {
 public:
  explicit ConvolutionEngine(const CpuContext& context);
  ~ConvolutionEngine();

  // Tensors as in Ops, in the layouts of cpu_context.hpp. Blocking.
  void conv_forward(const Conv2d& conv, const Tensor& x, const Tensor& weight, const Tensor& y);
  void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx);
  void conv_backward_weight(const Conv2d& conv, const Tensor& x, const Tensor& dy, const Tensor& dweight,
                            Accumulate accumulate);

  // One line a problem, "problem = kernel", sorted. Entries imported but not used yet are part of it.
  std::string export_plan() const;
  // Throws Error(other) for a line that is none. A kernel that this processor lacks is found at its first use.
  void import_plan(const std::string& plan);
  // As Ops.
  void suggest_plan(const std::string& plan);

 private:
  struct Choice {
    std::string name;
    std::unique_ptr<OneDnnKernel> kernel;
  };
  using Operands = std::array<std::byte*, 3>;

  void run(const ConvProblem& problem, const Operands& operands);
  Choice choose(const ConvProblem& problem, const Operands& operands);
  Choice measure(const ConvProblem& problem, const Operands& operands);
  Choice compile(const ConvProblem& problem, const std::string& name);  // without a kernel where there is none
  Choice compile_planned(const ConvProblem& problem, const std::string& name);
  Choice compile_suggested(const ConvProblem& problem);
  void execute(OneDnnKernel& kernel, const Operands& operands);
  double best_seconds(OneDnnKernel& kernel, const Operands& operands, double seconds_to_beat);

  const CpuContext& context_;
  std::map<ConvProblem, Choice> chosen_;
  std::map<std::string, std::string> plan_;       // kernel name by ConvProblem::text()
  std::map<std::string, std::string> suggested_;  // likewise
};

}  // namespace lockstep::cpu
