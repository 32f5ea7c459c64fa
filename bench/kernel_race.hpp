// Our kernels and oneDNN's for the same convolution on the same operands, in turn: other work on the machine then slows
// both.
#pragma once

#include <string>

#include "device/cpu/conv/conv_kernel.hpp"
#include "machine/cache_flush.hpp"

namespace lockstep {

struct RaceResult {
  std::string name;  // of the kernel
  double seconds;    // the best of its rounds; infinite where there is no kernel
};

struct Race {
  RaceResult ours;  // the kernel of the rule
  // The same as in a training step: operands have left the caches, a norm stands in front, that behind has its gradient
  // pending, sums and gates are taken.
  RaceResult in_step;
  RaceResult best_ours;  // of all that compute the problem
  RaceResult onednn;     // of all its kernels that start from and end with our layouts, conversions included
};

// What a kernel reads and writes in a training step, at the least.
std::int64_t operand_bytes(const ConvProblem& problem, const cpu::KernelTarget& target);

// Sets OpenMP's number of threads to the target's.
Race race(const ConvProblem& problem, const cpu::KernelTarget& target, int rounds, CacheFlush& caches);

}  // namespace lockstep
