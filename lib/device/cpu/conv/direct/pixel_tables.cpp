#include "device/cpu/conv/direct/pixel_tables.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::cpu {
namespace {

// Half of the L1 cache: the rest is for the pixels that pass by.
constexpr std::int64_t chunk_bytes = 20 << 10;

struct PhasePair {
  const AxisPhase& rows;
  const AxisPhase& columns;
};

void add_pixels(const PixelGeometry& geometry, const Band& band, const PhasePair& pair, const PixelStrides& source,
                const PixelStrides& result, PhaseTables& tables) {
  const std::int64_t first_row = pair.rows.source - source_span(geometry.axis, band.rows).first;
  const std::int64_t first_column = pair.columns.source - source_span(geometry.axis, geometry.width).first;
  const std::int64_t rows = geometry.axis.count(pair.rows, band.rows);
  const std::int64_t columns = geometry.axis.count(pair.columns, geometry.width);
  for (std::int64_t image = 0; image < band.images; ++image) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        tables.left_offsets.push_back(image * source.image + source.pixel(first_row + r * geometry.axis.advance,
                                                                          first_column + c * geometry.axis.advance));
        tables.out_offsets.push_back(
            image * result.image +
            result.pixel(pair.rows.first + r * geometry.axis.spacing, pair.columns.first + c * geometry.axis.spacing));
      }
    }
  }
}

void add_segments(const PixelGeometry& geometry, const PhasePair& pair, const Operand& operand,
                  const PixelStrides& source, PhaseTables& tables) {
  std::int64_t right = 0;
  for (std::int64_t block = 0; block < operand.blocks(); ++block) {
    for (const Tap& row : pair.rows.taps) {
      for (const Tap& column : pair.columns.taps) {
        const std::int64_t left = block * source.block + source.pixel(row.offset, column.offset);
        // The channels of an image's neighbouring columns lie next to each other, and so do their weights.
        if (operand.layout == Layout::images && &column != pair.columns.taps.data()) {
          tables.segments.back().steps += operand.channels;
        } else {
          tables.segments.push_back({left, right, operand.words_of(operand.channels_in(block))});
        }
        right += geometry.weight_matrix;
      }
    }
  }
  tables.right_stride = right;
}

void cut_chunks(const PixelGeometry& geometry, const Operand& operand, int vectors, PhaseTables& tables) {
  std::int64_t steps = 0;
  for (const ProductSegment& segment : tables.segments) steps += segment.steps;
  const std::int64_t bytes = steps * vectors * operand.lanes * size_of(DType::f32);
  const std::int64_t chunks =
      std::max({std::int64_t{1}, ceil_div(bytes, chunk_bytes), ceil_div(operand.blocks(), geometry.most_blocks)});
  const auto count = static_cast<std::int64_t>(tables.segments.size());
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) tables.chunk_ends.push_back(cut(count, chunks, chunk + 1));
}

}  // namespace

std::vector<PhaseTables> make_band_tables(const PixelGeometry& geometry, const Band& band, const Operand& operand,
                                          const PixelStrides& source, const PixelStrides& result, int vectors) {
  std::vector<PhaseTables> tables;
  std::int64_t right = 0;
  for (const AxisPhase& rows : geometry.axis.phases) {
    for (const AxisPhase& columns : geometry.axis.phases) {
      PhaseTables phase{};
      add_pixels(geometry, band, {rows, columns}, source, result, phase);
      add_segments(geometry, {rows, columns}, operand, source, phase);
      cut_chunks(geometry, operand, vectors, phase);
      phase.right = right;
      right += geometry.result_blocks * phase.right_stride;
      tables.push_back(std::move(phase));
    }
  }
  return tables;
}

}  // namespace lockstep::cpu
