// Our own convolution kernels: one object computes one problem, by a family of algorithms.
//
// Which family, block sizes and splits are a fixed function of the shape and the instruction set; nothing is timed.
// Partial sums are cut by shape alone and added in one order, so no bit of a result depends on the number of threads.
// Arithmetic is fp32, whatever the storage of features. Layouts: cpu_context.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/conv_problem.hpp"
#include "device/cpu/vector_loops.hpp"

namespace lockstep::cpu {

struct KernelTarget {
  InstructionSet set;  // one that runs here
  int threads;
};

// A norm in front of x, applied while x is read: z = activation(factor * x + offset) takes its place. Padding around
// the picture stays zero. Rows of whole blocks of channels; of channels that do not exist both are zero.
struct InputNorm {
  const float* factor;
  const float* offset;
  Activation activation;
};

// What forward leaves about y for a norm behind it: sums over all pixels, for whole blocks of channels. Of the fp32
// values, before they are rounded to the storage of y.
struct OutputMoments {
  double* sum;     // of y
  double* square;  // of y * y
};

struct ConvCall {
  std::array<std::byte*, 3> operands;             // in the order of ConvProblem, the output last
  const InputNorm* x_norm = nullptr;              // forward and backward_weight
  const OutputMoments* y_moments = nullptr;       // forward
  Accumulate accumulate = Accumulate::overwrite;  // backward_weight: add takes the whole sum to dweight once
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
std::unique_ptr<ConvKernel> make_direct(const ConvProblem& problem, const KernelTarget& target);  // computes them all

}  // namespace lockstep::cpu
