// Own convolution kernels. One object computes one ConvProblem, by one family of algorithms: direct or Winograd.
//
// Family, block sizes and splits are a fixed function of the shape and the instruction set; nothing is timed. Partial
// sums are split by shape alone and added in a fixed order, so no bit depends on the number of threads. Sums are fp32.
// Products are fp32, or of bf16 pairs if features are bf16 and the processor multiplies pairs: in direct kernels and in
// Winograd's backward passes. Then the other operand is rounded to bf16 too. Layouts: cpu_context.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/conv_problem.hpp"
#include "device/cpu/norm/piece_sums.hpp"
#include "device/cpu/passes/vector_loops.hpp"

namespace lockstep::cpu {

// Which Winograd products of bf16 features use pairs, if the instruction set multiplies them. Training uses `backward`,
// see device/cpu/README.md.
enum class WinogradPairs : std::uint8_t { none, backward, all };

struct KernelTarget {
  InstructionSet set;  // must run on this processor
  int threads;
  bool bf16_products = multiplies_bf16(set);  // direct kernels, bf16 features; slow if the set multiplies no pairs
  WinogradPairs winograd_pairs = WinogradPairs::backward;
};

// The deferred norm of a convolution's input: z = activation(factor * x + offset) replaces x; padding stays zero.
// `rows`: [blocks][norm_rows][B], see NormRow. Rows of padding channels are zero.
struct InputNorm {
  BlockNorm of(std::int64_t block, std::int64_t lanes) const { return {rows + block * norm_rows * lanes, activation}; }

  const float* rows;
  Activation activation;
};

// `norm` may be null: none.
inline BlockNorm norm_of(const InputNorm* norm, std::int64_t block, std::int64_t lanes) {
  return norm == nullptr ? BlockNorm{} : norm->of(block, lanes);
}

// The deferred backward of the norm that follows a convolution: dx = factor * ((dz - mean_dz) + x_factor * (x - mean))
// replaces dz and is stored in `dx`, which may be dz. `rows`: [blocks][norm_rows][B], as in InputNorm.
struct DeferredNormGradient {
  const float* rows;
  const std::byte* x;
  std::byte* dx;
};

struct ConvCall {
  std::array<std::byte*, 3> operands{};  // in the order of ConvProblem, the output last
  // forward, backward-weight: applied while x is read. backward-data: the norm whose activation turns dx into dz;
  // `sums` are of dz. `mask_x` is that norm's stored input. The gradient of a ReLU passes where `mask_y` is positive
  // or, if `mask_y` is null, where the norm of x is.
  const InputNorm* x_norm = nullptr;
  const std::byte* mask_x = nullptr;
  const std::byte* mask_y = nullptr;
  // backward-weight: applied while dy, which is then dz, is read.
  const DeferredNormGradient* dy_norm = nullptr;
  const OutputSums* sums = nullptr;  // forward: of y before rounding; backward-data: of dz
  // add: backward-weight adds the whole sum to dweight once; backward-data adds to dx before the activation.
  Accumulate accumulate = Accumulate::overwrite;

  BlockNorm norm_of(std::int64_t block, std::int64_t lanes) const { return cpu::norm_of(x_norm, block, lanes); }
  // That of backward-data's norm.
  ActivationGradient activation_gradient() const {
    if (x_norm->activation == Activation::none) return ActivationGradient::pass;
    if (x_norm->activation == Activation::gelu) return ActivationGradient::gelu_of_x;
    return mask_y != nullptr ? ActivationGradient::relu_of_y : ActivationGradient::relu_of_x;
  }
};

class ConvKernel {
 public:
  ConvKernel() = default;
  ConvKernel(const ConvKernel&) = delete;
  ConvKernel& operator=(const ConvKernel&) = delete;
  virtual ~ConvKernel() = default;

  virtual std::int64_t scratch_bytes() const = 0;
  virtual std::string name() const = 0;  // of the algorithm, for benches
  // `scratch` is aligned to a cache line. Its content is undefined before and after. Blocking.
  virtual void run(const ConvCall& call, std::byte* scratch) = 0;
};

// Null if Winograd does not compute the problem.
std::unique_ptr<ConvKernel> make_winograd(const ConvProblem& problem, const KernelTarget& target);
// Whether Winograd is faster than the direct kernel. Its error is ten times as large: about 1e-6 to 1e-5 of the largest
// value.
bool winograd_pays(const ConvProblem& problem);
// Whether Winograd multiplies pairs of bf16.
bool winograd_takes_pairs(const ConvProblem& problem, const KernelTarget& target);
std::unique_ptr<ConvKernel> make_direct(const ConvProblem& problem, const KernelTarget& target);  // any problem

}  // namespace lockstep::cpu
