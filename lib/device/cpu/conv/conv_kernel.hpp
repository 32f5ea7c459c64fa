// Our own convolution kernels: one object computes one problem, by a family of algorithms.
//
// Which family, block sizes and splits are a fixed function of the shape and the instruction set; nothing is timed.
// Partial sums are cut by shape alone and added in one order, so no bit of a result depends on the number of threads.
// Sums are fp32; so are products, but those from features in bf16 where the processor multiplies pairs of them, direct
// and of Winograd's gradients: then the other operand is rounded to bf16 too. Layouts: cpu_context.hpp.
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

// Which products of Winograd's, of features in bf16, are of pairs where the set multiplies those. A training takes
// those of backward alone: see device/cpu/README.md.
enum class WinogradPairs : std::uint8_t { none, backward, all };

struct KernelTarget {
  InstructionSet set;  // one that runs here
  int threads;
  bool bf16_products = multiplies_bf16(set);  // by direct kernels, of features in bf16; slow where the set has none
  WinogradPairs winograd_pairs = WinogradPairs::backward;
};

// The norm in front of a convolution: z = activation(factor * x + offset) stands for x, and padding around the picture
// stays zero. [blocks][norm_rows][B], see NormRow; rows of channels that do not exist are zero.
struct InputNorm {
  BlockNorm of(std::int64_t block, std::int64_t lanes) const { return {rows + block * norm_rows * lanes, activation}; }

  const float* rows;
  Activation activation;
};

// `norm` may be null: none.
inline BlockNorm norm_of(const InputNorm* norm, std::int64_t block, std::int64_t lanes) {
  return norm == nullptr ? BlockNorm{} : norm->of(block, lanes);
}

// The norm behind a convolution, whose gradient is deferred: dx = factor * ((dz - mean_dz) + x_factor * (x - mean))
// stands for dz, and is left in `dx`, which may be dz. [blocks][norm_rows][B], as of InputNorm.
struct DeferredNormGradient {
  const float* rows;
  const std::byte* x;
  std::byte* dx;
};

struct ConvCall {
  std::array<std::byte*, 3> operands{};  // in the order of ConvProblem, the output last
  // forward and backward_weight: is applied while x is read. backward_data: dx ends after the norm's activation, as
  // dz, which the sums of `sums` are about; `mask_x` is x as it is stored, `mask_y` what lets the gradient through
  // where it is positive, or null: then the norm of x does.
  const InputNorm* x_norm = nullptr;
  const std::byte* mask_x = nullptr;
  const std::byte* mask_y = nullptr;
  // backward_weight: is applied while dy, which is dz then, is read.
  const DeferredNormGradient* dy_norm = nullptr;
  const OutputSums* sums = nullptr;  // forward: of y before it is rounded; backward_data with a norm
  // backward_weight: add takes the whole sum to dweight once. backward_data: add takes it to dx, before a ReLU mask.
  Accumulate accumulate = Accumulate::overwrite;

  BlockNorm norm_of(std::int64_t block, std::int64_t lanes) const { return cpu::norm_of(x_norm, block, lanes); }
  // Of backward_data's norm. Without an activation there is none.
  ReluMask relu_mask() const {
    if (x_norm->activation == Activation::none) return ReluMask::open;
    return mask_y != nullptr ? ReluMask::from_y : ReluMask::from_x;
  }
};

class ConvKernel {
 public:
  ConvKernel() = default;
  ConvKernel(const ConvKernel&) = delete;
  ConvKernel& operator=(const ConvKernel&) = delete;
  virtual ~ConvKernel() = default;

  virtual std::int64_t scratch_bytes() const = 0;
  virtual std::string name() const = 0;  // of the algorithm, as a bench prints it
  // `scratch` is aligned to a cache line; what it holds means nothing before or after. Blocking.
  virtual void run(const ConvCall& call, std::byte* scratch) = 0;
};

// Null where the family does not compute the problem.
std::unique_ptr<ConvKernel> make_winograd(const ConvProblem& problem, const KernelTarget& target);
// Whether Winograd is faster than direct kernels. Its error is ten times theirs: about 1e-6 to 1e-5 of the largest
// value.
bool winograd_pays(const ConvProblem& problem);
// Whether Winograd's products are of pairs of bf16.
bool winograd_takes_pairs(const ConvProblem& problem, const KernelTarget& target);
std::unique_ptr<ConvKernel> make_direct(const ConvProblem& problem, const KernelTarget& target);  // computes them all

}  // namespace lockstep::cpu
