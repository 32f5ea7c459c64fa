// Layout of the lists: pixel_tables.hpp.
#include "device/cpu/conv/direct/pixel_tables.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "device/cpu/instruction_sets/loops.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

struct PhasePair {
  const AxisPhase& rows;
  const AxisPhase& columns;
};

void add_pixels(const PixelGeometry& geometry, const Band& band, const PhasePair& pair, const Operand& operand,
                const PixelStrides& source, const PixelStrides& result, PhaseTables& tables) {
  const auto& [row_axis, column_axis] = geometry.axes;
  const std::int64_t first_row = pair.rows.source - source_span(row_axis, band.rows).first;
  const std::int64_t first_column = pair.columns.source - source_span(column_axis, geometry.width).first;
  const std::int64_t rows = row_axis.count(pair.rows, band.rows);
  const std::int64_t columns = column_axis.count(pair.columns, geometry.width);
  for (std::int64_t set = 0; set < band.images; ++set) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t left =
            set * source.image + source.pixel(first_row + r * row_axis.advance, first_column + c * column_axis.advance);
        const std::int64_t out =
            set * operand.set_images * result.image +
            result.pixel(pair.rows.first + r * row_axis.spacing, pair.columns.first + c * column_axis.spacing);
        for (std::int64_t image = 0; image < operand.set_images; ++image) {
          tables.left_offsets.push_back(left + image * operand.unit_words());
          tables.out_offsets.push_back(out + image * result.image);
        }
      }
    }
  }
}

void add_segments(const PixelGeometry& geometry, const PhasePair& pair, const Operand& operand,
                  const PixelStrides& source, PhaseTables& tables) {
  std::int64_t right = 0;
  for (std::int64_t unit = 0; unit < operand.units(); ++unit) {
    for (const Tap& row : pair.rows.taps) {
      for (const Tap& column : pair.columns.taps) {
        const std::int64_t left = unit * source.block + source.pixel(row.offset, column.offset);
        // Neighboring columns of an image have contiguous channels and contiguous weights.
        if (operand.layout == Layout::images && &column != pair.columns.taps.data()) {
          tables.segments.back().steps += operand.channels;
        } else {
          tables.segments.push_back({left, right, operand.words_in(unit)});
        }
        right += operand.unit_blocks * geometry.weight_matrix;
      }
    }
  }
  tables.right_stride = right;
}

void cut_stages(const PixelGeometry& geometry, const Operand& operand, int vectors, PhaseTables& tables) {
  std::int64_t steps = 0;
  for (const ProductSegment& segment : tables.segments) steps += segment.steps;
  const std::int64_t bytes = steps * vectors * operand.lanes * size_of(DType::f32);
  const std::int64_t stages = std::max(
      {std::int64_t{1}, ceil_div(bytes, geometry.stage_bytes), ceil_div(operand.blocks(), geometry.max_blocks)});
  const auto count = static_cast<std::int64_t>(tables.segments.size());
  for (std::int64_t stage = 0; stage < stages; ++stage) tables.stage_ends.push_back(cut(count, stages, stage + 1));
}

}  // namespace

std::vector<PhaseTables> make_band_tables(const PixelGeometry& geometry, const Band& band, const Operand& operand,
                                          const PixelStrides& source, const PixelStrides& result, int vectors) {
  std::vector<PhaseTables> tables;
  std::int64_t right = 0;
  for (const AxisPhase& rows : geometry.axes.rows.phases) {
    for (const AxisPhase& columns : geometry.axes.columns.phases) {
      PhaseTables phase{};
      add_pixels(geometry, band, {rows, columns}, operand, source, result, phase);
      add_segments(geometry, {rows, columns}, operand, source, phase);
      cut_stages(geometry, operand, vectors, phase);
      phase.right = right;
      right += geometry.result_blocks * phase.right_stride;
      tables.push_back(std::move(phase));
    }
  }
  return tables;
}

PixelWeights::PixelWeights(const ConvProblem& problem, const KernelTarget& target, const Operand& source)
    : target_(target),
      loops_(loops_of(target.set).products),
      places_(problem.conv, static_cast<int>(loops_.lanes)),
      conv_(problem.conv),
      transposes_(problem.direction == Direction::backward_data),
      pairs_(source.word == Word::channel_pair),
      matrix_words_(source.words_of(transposes_ ? places_.lanes : places_.rows) * places_.lanes),
      unit_blocks_(source.unit_blocks) {}

std::int64_t PixelWeights::prepared_words() const {
  if (!transposes_ && !pairs_) return 0;
  return places_.out_blocks * places_.in_blocks * places_.window * matrix_words_;
}

const float* PixelWeights::prepare(const float* stored, const std::vector<PhaseTables>& phases, float* prepared) const {
  if (!transposes_ && !pairs_) return stored;
  if (transposes_) {
    transpose(stored, phases, prepared);
  } else {
    pair(stored, prepared);
  }
  return prepared;
}

// The offset of a source block's weights under a tap, within the weights of a result block.
std::int64_t PixelWeights::place_of(std::int64_t block, std::int64_t tap, std::int64_t tap_count) const {
  return ((block / unit_blocks_ * tap_count + tap) * unit_blocks_ + block % unit_blocks_) * matrix_words_;
}

void PixelWeights::pair(const float* stored, float* paired) const {
  const std::int64_t window = places_.window;
  parallel_for(target_.threads, places_.out_blocks, [&](std::int64_t out) {
    const float* from = stored + out * places_.out_stride();
    float* const to = paired + out * places_.in_blocks * window * matrix_words_;
    for (std::int64_t in = 0; in < places_.in_blocks; ++in) {
      for (std::int64_t tap = 0; tap < window; ++tap, from += places_.matrix()) {
        loops_.pair_rows(from, places_.rows, to + place_of(in, tap, window));
      }
    }
  });
}

// For every tap of every phase, in the order of its segments.
void PixelWeights::transpose(const float* stored, const std::vector<PhaseTables>& phases, float* transposed) const {
  const Axes axes = backward_data_axes(conv_);
  parallel_for(target_.threads, places_.in_blocks, [&](std::int64_t in) {
    alignas(64) std::array<float, max_lanes * max_lanes> matrix{};  // before it is converted to pairs
    const float* const first = stored + in * places_.window * places_.matrix();
    auto phase = phases.begin();
    for (const AxisPhase& rows : axes.rows.phases) {
      for (const AxisPhase& columns : axes.columns.phases) {
        float* const of_phase = transposed + phase->right + in * phase->right_stride;
        ++phase;
        const std::int64_t tap_count = std::ssize(rows.taps) * std::ssize(columns.taps);
        for (std::int64_t out = 0; out < places_.out_blocks; ++out) {
          std::int64_t number = 0;
          for (const Tap& row : rows.taps) {
            for (const Tap& column : columns.taps) {
              const std::int64_t tap = row.kernel * conv_.kernel.width + column.kernel;
              const float* const from = first + out * places_.out_stride() + tap * places_.matrix();
              float* const to = of_phase + place_of(out, number++, tap_count);
              loops_.transpose(from, places_.lanes, places_.rows, pairs_ ? matrix.data() : to);
              if (pairs_) loops_.pair_rows(matrix.data(), places_.lanes, to);
            }
          }
        }
      }
    }
  });
}

}  // namespace lockstep::cpu
