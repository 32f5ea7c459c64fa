// Sums of an output for the norm next to it, apart for each piece of the work: added in one order in the end, so that
// no bit depends on who computed which piece.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/conv/conv_kernel.hpp"

namespace lockstep::cpu {

struct PieceSums {
  std::int64_t bytes() const { return pieces * blocks * block_values() * std::int64_t{sizeof(double)}; }
  // [2][lanes], in `memory` of as many bytes.
  double* of(std::byte* memory, std::int64_t piece, std::int64_t block) const {
    return reinterpret_cast<double*>(memory) + (piece * blocks + block) * block_values();
  }
  void add_up(std::byte* memory, const OutputSums& totals) const {
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        double first = 0;
        double second = 0;
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
          first += of(memory, piece, block)[lane];
          second += of(memory, piece, block)[lanes + lane];
        }
        totals.first[block * lanes + lane] = first;
        totals.second[block * lanes + lane] = second;
      }
    }
  }

  std::int64_t pieces, blocks, lanes;

 private:
  std::int64_t block_values() const { return 2 * lanes; }
};

}  // namespace lockstep::cpu
