// Sums of squares over runs of a flat array in host memory, with the same bits for any number of threads. Runs are
// split into pieces of equal size, and sums of pieces are added in order.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/flat/update_rule.hpp"

namespace lockstep::cpu {

class SquareSums {
 public:
  // For each of `runs`. `context` outlives this.
  SquareSums(const CpuContext& context, const VectorLoops& loops, const std::vector<UpdateRun>& runs);

  // sums[run] of the array at `values`. Products and sums are double.
  void sum(const float* values, std::vector<double>& sums);

 private:
  struct Piece {
    std::size_t run;
    std::int64_t first;
    std::int64_t count;
  };

  const CpuContext& context_;
  const VectorLoops& loops_;
  std::size_t runs_;
  std::vector<Piece> pieces_;
  std::vector<double> piece_sums_;
};

}  // namespace lockstep::cpu
