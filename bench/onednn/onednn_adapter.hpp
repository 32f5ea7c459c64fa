// oneDNN as the reference for Lockstep's kernels: convolution and reorder, with both of its C++ APIs (2.6 and 3.x).
//
// Operands have the layouts of cpu_context.hpp. If a primitive needs another layout or element type, the kernel
// includes a conversion pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "device/conv_problem.hpp"

namespace lockstep::cpu {

std::string onednn_version();  // of the loaded library: "2.6.3"

// A compiled primitive with three operands, the output last.
class OneDnnKernel {
 public:
  struct Parts;
  explicit OneDnnKernel(std::unique_ptr<Parts> parts);
  ~OneDnnKernel();

  std::int64_t scratch_bytes() const;
  // `scratch` must be aligned to a cache line. Blocking. Throws Error if oneDNN fails.
  void run(const std::array<std::byte*, 3>& operands, std::byte* scratch);

 private:
  std::unique_ptr<Parts> parts_;
};

// Builds the kernel. Returns null if oneDNN cannot build what it described, or a layout conversion does not exist.
using CompileKernel = std::function<std::unique_ptr<OneDnnKernel>()>;

// Calls visit(name, compile) for every way in which oneDNN computes `problem` on this processor. Each has a unique
// name: "direct f32 jit:avx2", with "free" if oneDNN chose the layouts of activations. `compile` is valid only during
// the call.
void visit_convolutions(const ConvProblem& problem, int lanes,
                        const std::function<void(const std::string& name, const CompileKernel& compile)>& visit);

}  // namespace lockstep::cpu
