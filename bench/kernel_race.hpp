// Our kernels and oneDNN's for the same convolution on the same operands, in turn: other work on the machine then slows
// both.
#pragma once

#include <string>

#include "device/cpu/conv/conv_kernel.hpp"

namespace lockstep {

struct RaceResult {
  std::string name;  // of the kernel
  double seconds;    // the best of its rounds; infinite where there is no kernel
};

struct Race {
  RaceResult ours;       // the kernel of the rule
  RaceResult best_ours;  // of all that compute the problem
  RaceResult onednn;     // of all its kernels that start from and end with our layouts, conversions included
};

// Sets OpenMP's number of threads to the target's.
Race race(const ConvProblem& problem, const cpu::KernelTarget& target, int rounds);

}  // namespace lockstep
