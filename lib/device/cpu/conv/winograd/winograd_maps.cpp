// Winograd forward and backward-data. Algorithm and layouts of U, V and M: winograd_loops.hpp.
//
// By tiles: transforms all weights to U once. Then each thread takes pieces of `at_once_` tiles through all steps:
// windows to V, M = V * U, M to outputs. V and M of a piece stay in the thread's cache. Norm sums are kept per piece.
//
// By outputs, if U is too large for the cache: all threads transform `cut_.tiles` tiles to a shared V. Then each thread
// computes groups of `cut_.out_blocks` output blocks. It transforms weights of `cut_.in_blocks` input blocks at a time,
// just before it multiplies them into M. Norm sums belong to one group, so they are added in place.
#include <algorithm>

#include "device/cpu/conv/winograd/winograd_kernels.hpp"
#include "device/cpu/norm/piece_sums.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

class WinogradByTiles final : public ConvKernel {
 public:
  WinogradByTiles(const WinogradShape& shape, std::int64_t tiles_at_once)
      : pass_(shape),
        lanes_(shape.lanes()),
        points_(shape.loops->points),
        at_once_(std::min(tiles_at_once, pass_.tiles)),
        pieces_(ceil_div(pass_.tiles, at_once_)),
        words_(lanes_ / pass_.loops->word_values),
        u_stride_(padded(pass_.in_blocks * pass_.out_blocks * words_ * lanes_)),
        v_stride_(padded(pass_.in_blocks * at_once_ * words_)),
        m_stride_(padded(pass_.out_blocks * at_once_ * lanes_)),
        piece_sums_{pieces_, pass_.out_blocks, lanes_} {
    u_ = plan_.take_floats(points_ * u_stride_);
    v_ = plan_.take_floats_each(pass_.threads, points_ * v_stride_);
    m_ = plan_.take_floats_each(pass_.threads, points_ * m_stride_);
    sums_ = plan_.take(piece_sums_.bytes());
  }

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return winograd_name("by tiles", *pass_.loops); }

  void run(const ConvCall& call, std::byte* scratch) override {
    parallel_for(pass_.threads, pass_.in_blocks * pass_.out_blocks, [&](std::int64_t at) {
      transform_weights(call.operands[1], at % pass_.in_blocks, at / pass_.in_blocks, floats_at(scratch, u_));
    });
    parallel_pieces(pass_.threads, pieces_, [&](int thread, std::int64_t piece) {
      run_piece(call, piece, scratch, v_.of(scratch, thread), m_.of(scratch, thread));
    });
    if (call.sums != nullptr) piece_sums_.add_up(scratch + sums_, *call.sums);
  }

 private:
  void transform_weights(const std::byte* stored, std::int64_t in_block, std::int64_t out_block, float* u) const {
    const std::int64_t first = out_block / product_panel * product_panel;  // first block of its panel
    const std::int64_t width = panel_width(pass_.out_blocks - first, product_panel);
    float* to = u + (first * pass_.in_blocks + in_block * width) * words_ * lanes_ + (out_block - first) * lanes_;
    pass_.loops->transform_weights(pass_.weights(stored, in_block, out_block), pass_.order,
                                   {to, u_stride_, width * lanes_});
  }

  void run_piece(const ConvCall& call, std::int64_t piece, std::byte* scratch, float* v, float* m) const {
    const TileRange range = pass_.tiles_from(piece * at_once_, at_once_);
    const TileOrder tiles = pass_.ordered(range);
    const std::int64_t v_block_stride = at_once_ * words_;
    const std::int64_t m_block_stride = at_once_ * lanes_;
    for (std::int64_t block = 0; block < pass_.in_blocks; ++block) {
      pass_.loops->transform_windows(pass_.from, tiles.all(), call.operands[0] + block * pass_.from_plane_bytes,
                                     pass_.input(call, block), {v + block * v_block_stride, v_stride_, words_});
    }
    Prefetch prefetch = pass_.prefetch(call, range, pass_.tiles_from((piece + 1) * at_once_, at_once_),
                                       product_calls(*pass_.loops, tiles, pass_.out_blocks));
    pass_.loops->multiply({.points = points_,
                           .v = v,
                           .v_point_stride = v_stride_,
                           .v_block_stride = v_block_stride,
                           .u = floats_at(scratch, u_),
                           .u_point_stride = u_stride_,
                           .m = m,
                           .m_point_stride = m_stride_,
                           .m_block_stride = m_block_stride,
                           .tiles = tiles,
                           .in_blocks = pass_.in_blocks,
                           .out_blocks = pass_.out_blocks,
                           .accumulate = Accumulate::overwrite,
                           .prefetch = &prefetch});
    for (std::int64_t block = 0; block < pass_.out_blocks; ++block) {
      BlockSums sums;
      if (call.sums != nullptr) {
        double* values = piece_sums_.of(scratch + sums_, piece, block);
        std::fill_n(values, 2 * lanes_, 0.0);
        sums = {values, values + lanes_};
      }
      pass_.loops->transform_outputs(pass_.to, tiles.all(), {m + block * m_block_stride, m_stride_, lanes_},
                                     call.operands[2] + block * pass_.to_plane_bytes, pass_.output(call, block, sums));
    }
  }

  WinogradPass pass_;                            // the maps, and how tiles cover them
  std::int64_t lanes_, points_;                  // channels per block (B); points per tile
  std::int64_t at_once_, pieces_;                // tiles per piece; number of pieces
  std::int64_t words_;                           // per tile and channel block: B, or B / 2 in pairs
  std::int64_t u_stride_, v_stride_, m_stride_;  // words between consecutive points of U, V, M
  PieceSums piece_sums_;                         // norm sums [output block][piece][2][B]
  ScratchLayout plan_;
  std::int64_t u_;           // place of U [point][panel][input channel][panel's channels], shared
  ScratchPlaces v_{}, m_{};  // per thread: V [point][input block][tile][words_], M [point][output block][tile][B]
  std::int64_t sums_;        // place of piece_sums_
};

class WinogradByOutputs final : public ConvKernel {
 public:
  WinogradByOutputs(const WinogradShape& shape, const OutputCut& cut)
      : pass_(shape),
        lanes_(shape.lanes()),
        points_(shape.loops->points),
        cut_{std::min(cut.tiles, pass_.tiles), std::min(cut.out_blocks, pass_.out_blocks),
             std::min(cut.in_blocks, pass_.in_blocks)},
        groups_(ceil_div(pass_.out_blocks, cut_.out_blocks)),
        words_(lanes_ / pass_.loops->word_values),
        u_stride_(padded(cut_.in_blocks * cut_.out_blocks * words_ * lanes_)),
        v_stride_(padded(pass_.in_blocks * cut_.tiles * words_)),
        m_stride_(padded(cut_.out_blocks * cut_.tiles * lanes_)) {
    v_ = plan_.take_floats(points_ * v_stride_);
    u_ = plan_.take_floats_each(pass_.threads, points_ * u_stride_);
    m_ = plan_.take_floats_each(pass_.threads, points_ * m_stride_);
  }

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return winograd_name("by outputs", *pass_.loops); }

  void run(const ConvCall& call, std::byte* scratch) override {
    if (call.sums != nullptr) {
      std::fill_n(call.sums->first, pass_.out_blocks * lanes_, 0.0);
      std::fill_n(call.sums->second, pass_.out_blocks * lanes_, 0.0);
    }
    for (std::int64_t first = 0; first < pass_.tiles; first += cut_.tiles) {
      const TileOrder tiles = pass_.ordered(pass_.tiles_from(first, cut_.tiles));
      transform_windows(call, tiles, scratch);
      parallel_pieces(pass_.threads, groups_, [&](int thread, std::int64_t group) {
        run_group(call, tiles, group * cut_.out_blocks, floats_at(scratch, v_), u_.of(scratch, thread),
                  m_.of(scratch, thread));
      });
    }
  }

 private:
  std::int64_t v_block_stride() const { return cut_.tiles * words_; }
  std::int64_t m_block_stride() const { return cut_.tiles * lanes_; }

  void transform_windows(const ConvCall& call, const TileOrder& tiles, std::byte* scratch) const {
    float* v = floats_at(scratch, v_);
    constexpr std::int64_t tiles_each = 16;
    const std::int64_t count = tiles.all().count;
    const std::int64_t parts = ceil_div(count, tiles_each);
    parallel_for(pass_.threads, pass_.in_blocks * parts, [&](std::int64_t at) {
      const std::int64_t block = at / parts;
      const std::int64_t skipped = at % parts * tiles_each;
      const Tiles part = tiles.part(skipped, std::min(tiles_each, count - skipped));
      pass_.loops->transform_windows(pass_.from, part, call.operands[0] + block * pass_.from_plane_bytes,
                                     pass_.input(call, block),
                                     {v + block * v_block_stride() + skipped * words_, v_stride_, words_});
    });
  }

  // Computes all outputs of the group of channel blocks that starts at `first`.
  void run_group(const ConvCall& call, const TileOrder& tiles, std::int64_t first, const float* v, float* u,
                 float* m) const {
    const std::int64_t out_blocks = std::min(cut_.out_blocks, pass_.out_blocks - first);
    for (std::int64_t in_first = 0; in_first < pass_.in_blocks; in_first += cut_.in_blocks) {
      const std::int64_t in_blocks = std::min(cut_.in_blocks, pass_.in_blocks - in_first);
      for (std::int64_t out = 0; out < out_blocks; ++out) {
        const std::int64_t panel = out / product_panel * product_panel;
        const std::int64_t width = panel_width(out_blocks - panel, product_panel);
        float* to = u + panel * in_blocks * words_ * lanes_ + (out - panel) * lanes_;
        for (std::int64_t in = 0; in < in_blocks; ++in, to += width * words_ * lanes_) {
          pass_.loops->transform_weights(pass_.weights(call.operands[1], in_first + in, first + out), pass_.order,
                                         {to, u_stride_, width * lanes_});
        }
      }
      pass_.loops->multiply({.points = points_,
                             .v = v + in_first * v_block_stride(),
                             .v_point_stride = v_stride_,
                             .v_block_stride = v_block_stride(),
                             .u = u,
                             .u_point_stride = u_stride_,
                             .m = m,
                             .m_point_stride = m_stride_,
                             .m_block_stride = m_block_stride(),
                             .tiles = tiles,
                             .in_blocks = in_blocks,
                             .out_blocks = out_blocks,
                             .accumulate = in_first > 0 ? Accumulate::add : Accumulate::overwrite});
    }
    for (std::int64_t out = 0; out < out_blocks; ++out) {
      BlockSums sums;
      if (call.sums != nullptr) {
        sums = {call.sums->first + (first + out) * lanes_, call.sums->second + (first + out) * lanes_};
      }
      pass_.loops->transform_outputs(pass_.to, tiles.all(), {m + out * m_block_stride(), m_stride_, lanes_},
                                     call.operands[2] + (first + out) * pass_.to_plane_bytes,
                                     pass_.output(call, first + out, sums));
    }
  }

  WinogradPass pass_;                            // the maps, and how tiles cover them
  std::int64_t lanes_, points_;                  // channels per block (B); points per tile
  OutputCut cut_;                                // tiles and channel blocks that are processed together
  std::int64_t groups_;                          // number of groups of output blocks
  std::int64_t words_;                           // per tile and channel block: B, or B / 2 in pairs
  std::int64_t u_stride_, v_stride_, m_stride_;  // words between consecutive points of U, V, M
  ScratchLayout plan_;
  std::int64_t v_;           // place of V [point][input block][tile][words_], shared
  ScratchPlaces u_{}, m_{};  // per thread: U of a group and some input blocks; M [point][group's block][tile][B]
};

}  // namespace

std::unique_ptr<ConvKernel> make_winograd_by_tiles(const WinogradShape& shape, std::int64_t tiles_at_once) {
  return std::make_unique<WinogradByTiles>(shape, tiles_at_once);
}

std::unique_ptr<ConvKernel> make_winograd_by_outputs(const WinogradShape& shape, const OutputCut& cut) {
  return std::make_unique<WinogradByOutputs>(shape, cut);
}

}  // namespace lockstep::cpu
