// oneDNN as the peer of our own kernels: convolution and reorder, by both of its C++ APIs (2.6 and 3.x).
//
// Operands are given and taken as cpu_context.hpp lays them out. Where a primitive wants another layout or element
// type, a converting pass is part of the kernel.
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

std::string onednn_version();  // of the library that is loaded, "2.6.3"

// A compiled primitive for three operands, the output last.
class OneDnnKernel {
 public:
  struct Parts;
  explicit OneDnnKernel(std::unique_ptr<Parts> parts);
  ~OneDnnKernel();

  std::int64_t scratch_bytes() const;
  // `scratch` is aligned to a cache line. Blocking. Throws Error if oneDNN fails.
  void run(const std::array<std::byte*, 3>& operands, std::byte* scratch);

 private:
  std::unique_ptr<Parts> parts_;
};

// Builds the kernel; null where oneDNN described but cannot build it, or where its layouts cannot be converted to.
using CompileKernel = std::function<std::unique_ptr<OneDnnKernel>()>;

// Calls visit(name, compile) for every way in which oneDNN computes `problem` on this processor. A name stands for one
// of them: "direct f32 jit:avx2", with "free" if it chose the layouts of activations. `compile` is valid during the
// call only.
void visit_convolutions(const ConvProblem& problem, int lanes,
                        const std::function<void(const std::string& name, const CompileKernel& compile)>& visit);

}  // namespace lockstep::cpu
