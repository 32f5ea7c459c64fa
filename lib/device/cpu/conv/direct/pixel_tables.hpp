// Lists of offsets from which product loops compute the pixels of a band: built once for a shape.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cpu/conv/direct/direct_operand.hpp"

namespace lockstep::cpu {

// What the sums of a convolution are over.
struct PixelGeometry {
  Axis axis;                   // of rows and columns alike
  std::int64_t width;          // of the result
  std::int64_t weight_matrix;  // words of a source block's weights under one tap
  std::int64_t result_blocks;
  std::int64_t most_blocks;  // of the source to be read together
};

// The pixels that meet the same taps.
struct PhaseTables {
  std::vector<std::int64_t> left_offsets;  // of each pixel, from the first source row and column that the band reads
  std::vector<std::int64_t> out_offsets;   // of each pixel, from the band's first
  std::vector<ProductSegment> segments;    // a source block under a tap each; weights lie in the same order
  std::vector<std::int64_t> chunk_ends;    // segments whose weights stay in the L1 cache together end before these
  std::int64_t right;                      // where the weights of the phase begin,
  std::int64_t right_stride;               // and from one block of the result to the next
};

// `source`: strides in place or in a packed band. `result`: strides of the result. `vectors`: blocks of it at once.
// Phases in the order (of rows, of columns).
std::vector<PhaseTables> make_band_tables(const PixelGeometry& geometry, const Band& band, const Operand& operand,
                                          const PixelStrides& source, const PixelStrides& result, int vectors);

}  // namespace lockstep::cpu
