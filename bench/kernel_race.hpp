// Compares Lockstep's and oneDNN's kernels for the same convolution on the same operands. Runs are interleaved, so that
// other work on the machine slows both.
#pragma once

#include <string>

#include "device/cpu/conv/conv_kernel.hpp"
#include "machine/cache_flush.hpp"

namespace lockstep {

struct RaceResult {
  std::string name;  // of the kernel
  double seconds;    // minimum over the rounds; infinite if there is no kernel
};

struct Race {
  RaceResult ours;  // the default kernel
  // The same kernel as in a training step: operands are not in the caches, a previous norm is applied, the next norm's
  // gradient is deferred, and sums and ReLU masks are computed.
  RaceResult in_step;
  RaceResult best_ours;  // of all kernels that can compute the problem
  RaceResult onednn;     // of all oneDNN kernels, including conversions from and to Lockstep's layouts
};

// The minimum of bytes that a kernel reads and writes in a training step.
std::int64_t operand_bytes(const ConvProblem& problem, const cpu::KernelTarget& target);

// Sets OpenMP's number of threads to that of the target.
Race race(const ConvProblem& problem, const cpu::KernelTarget& target, int rounds, CacheFlush& caches);

}  // namespace lockstep
