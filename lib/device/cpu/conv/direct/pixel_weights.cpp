#include "device/cpu/conv/direct/pixel_weights.hpp"

#include <array>

#include "device/cpu/instruction_sets/loops.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {

PixelWeights::PixelWeights(const ConvProblem& problem, const KernelTarget& target, const Operand& source)
    : target_(target),
      loops_(loops_of(target.set).products),
      places_(problem.conv, static_cast<int>(loops_.lanes)),
      conv_(problem.conv),
      transposes_(problem.direction == Direction::backward_data),
      pairs_(source.word == Word::channel_pair),
      matrix_words_(source.words_of(transposes_ ? places_.lanes : places_.rows) * places_.lanes) {}

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

void PixelWeights::pair(const float* stored, float* paired) const {
  const std::int64_t matrices = places_.in_blocks * places_.window;
  parallel_for(target_.threads, places_.out_blocks, [&](std::int64_t out) {
    for (std::int64_t matrix = out * matrices; matrix < (out + 1) * matrices; ++matrix) {
      loops_.pair_rows(stored + matrix * places_.matrix(), places_.rows, paired + matrix * matrix_words_);
    }
  });
}

// For every tap of every phase, in the order of its segments.
void PixelWeights::transpose(const float* stored, const std::vector<PhaseTables>& phases, float* transposed) const {
  const Axis axis = backward_data_axis(conv_);
  parallel_for(target_.threads, places_.in_blocks, [&](std::int64_t in) {
    alignas(64) std::array<float, 16 * 16> matrix{};  // on the way to pairs
    const float* const first = stored + in * places_.window * places_.matrix();
    auto phase = phases.begin();
    for (const AxisPhase& rows : axis.phases) {
      for (const AxisPhase& columns : axis.phases) {
        float* to = transposed + phase->right + in * phase->right_stride;
        ++phase;
        for (std::int64_t out = 0; out < places_.out_blocks; ++out) {
          for (const Tap& row : rows.taps) {
            for (const Tap& column : columns.taps) {
              const std::int64_t tap = row.kernel * conv_.kernel + column.kernel;
              const float* const from = first + out * places_.out_stride() + tap * places_.matrix();
              loops_.transpose(from, places_.lanes, places_.rows, pairs_ ? matrix.data() : to);
              if (pairs_) loops_.pair_rows(matrix.data(), places_.lanes, to);
              to += matrix_words_;
            }
          }
        }
      }
    }
  });
}

}  // namespace lockstep::cpu
