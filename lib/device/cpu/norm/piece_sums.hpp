// Per-channel sums over pixels, kept separately for each piece of the work. Pieces are cut by shape alone and added in
// a fixed order, so no bit depends on which thread computed a piece.
//
//   [channel block][piece][quantity][lane]     doubles
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/ops.hpp"

namespace lockstep::cpu {

inline void put(const Tensor& slot, std::int64_t place, double value, Accumulate accumulate) {
  float& target = slot.as<float>()[place];
  target = accumulate == Accumulate::add ? target + static_cast<float>(value) : static_cast<float>(value);
}

// Sums over all pixels for the norm next to an output, for whole channel blocks.
struct OutputSums {
  double* first;   // of y, or of dz
  double* second;  // of y * y, or of dz * (x - mean)
};

struct PieceSums {
  std::int64_t bytes() const { return pieces * blocks * piece_values() * std::int64_t{sizeof(double)}; }
  // The sums of a piece: [quantities][lanes], in `memory` of bytes() bytes.
  double* of(std::byte* memory, std::int64_t piece, std::int64_t block) const {
    return reinterpret_cast<double*>(memory) + (block * pieces + piece) * piece_values();
  }
  double total(std::byte* memory, std::int64_t block, std::int64_t quantity, std::int64_t lane) const {
    double sum = 0;
    for (std::int64_t piece = 0; piece < pieces; ++piece) sum += of(memory, piece, block)[quantity * lanes + lane];
    return sum;
  }
  // Adds all pieces, for two quantities.
  void add_up(std::byte* memory, const OutputSums& totals) const {
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        totals.first[block * lanes + lane] = total(memory, block, 0, lane);
        totals.second[block * lanes + lane] = total(memory, block, 1, lane);
      }
    }
  }

  std::int64_t pieces, blocks, lanes;
  std::int64_t quantities = 2;

 private:
  std::int64_t piece_values() const { return quantities * lanes; }
};

}  // namespace lockstep::cpu
