// Winograd backward-weight. Algorithm and layouts of V, Y and D: winograd_loops.hpp. A term of a sum is a tile, or a
// pair of tiles in bf16.
//
// By pieces: each piece of the tiles has its own D of all weights. A thread transforms `at_once_` tiles at a time and
// adds their products to the piece's D. At the end, the pieces' sums are added in order and transformed to weight
// gradients.
//
// By weights: all threads transform `cut_.tiles` tiles to a shared V and Y. Then each thread computes units of D: one
// panel of output blocks by `cut_.in_blocks` input blocks. If the tiles take several rounds, D stays between rounds.
#include <algorithm>

#include "device/cpu/conv/winograd/winograd_kernels.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

class WinogradGradientByPieces final : public ConvKernel {
 public:
  WinogradGradientByPieces(const WinogradShape& shape, const PieceCut& cut)
      : shape_(shape),
        lanes_(shape.lanes()),
        points_(shape.loops->points),
        piece_tiles_(std::min(cut.tiles, shape.tiles())),
        at_once_(std::min(cut.tiles_at_once, piece_tiles_)),
        pieces_(ceil_div(shape.tiles(), piece_tiles_)),
        panels_(panels_of(shape.out_blocks, gradient_panel)),
        block_stride_(shape.terms(at_once_) * lanes_),
        v_stride_(padded(shape.in_blocks * block_stride_)),
        y_stride_(padded(shape.out_blocks * block_stride_)),
        d_stride_(padded(shape.in_blocks * shape.out_blocks * lanes_ * lanes_)) {
    v_ = plan_.take_floats_each(shape_.threads, points_ * v_stride_);
    y_ = plan_.take_floats_each(shape_.threads, points_ * y_stride_);
    d_ = plan_.take_floats(pieces_ * points_ * d_stride_);
  }

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return winograd_name("by pieces", *shape_.loops); }

  void run(const ConvCall& call, std::byte* scratch) override {
    parallel_pieces(shape_.threads, pieces_, [&](int thread, std::int64_t piece) {
      sum_piece(call, piece, v_.of(scratch, thread), y_.of(scratch, thread),
                floats_at(scratch, d_) + piece * points_ * d_stride_);
    });
    parallel_for(shape_.threads, points_, [&](std::int64_t point) { add_pieces(floats_at(scratch, d_), point); });
    const auto panels = static_cast<std::int64_t>(panels_.size());
    parallel_for(shape_.threads, panels * shape_.in_blocks, [&](std::int64_t at) {
      finish(call, panels_[static_cast<std::size_t>(at / shape_.in_blocks)], at % shape_.in_blocks,
             floats_at(scratch, d_));
    });
  }

 private:
  void sum_piece(const ConvCall& call, std::int64_t piece, float* v, float* y, float* d) const {
    const std::int64_t begin = piece * piece_tiles_;
    const std::int64_t end = std::min(begin + piece_tiles_, shape_.tiles());
    for (std::int64_t first = begin; first < end; first += at_once_) {
      const TileRange range{first, std::min(at_once_, end - first)};
      const TileOrder tiles = shape_.ordered(range);
      transform(call, tiles.all(), v, y);
      Prefetch prefetch = shape_.prefetch(call, shape_.tiles_from(first + at_once_, at_once_),
                                          gradient_calls(*shape_.loops, shape_.in_blocks, shape_.out_blocks));
      shape_.loops->multiply_gradient({.points = points_,
                                       .v = v,
                                       .v_point_stride = v_stride_,
                                       .v_block_stride = block_stride_,
                                       .y = y,
                                       .y_point_stride = y_stride_,
                                       .y_block_stride = block_stride_,
                                       .d = d,
                                       .d_point_stride = d_stride_,
                                       .d_block_stride = shape_.in_blocks * lanes_ * lanes_,
                                       .tiles = tiles,
                                       .in_blocks = shape_.in_blocks,
                                       .out_blocks = shape_.out_blocks,
                                       .accumulate = first > begin ? Accumulate::add : Accumulate::overwrite,
                                       .prefetch = &prefetch});
    }
  }

  void transform(const ConvCall& call, const Tiles& tiles, float* v, float* y) const {
    for (std::int64_t block = 0; block < shape_.in_blocks; ++block) {
      shape_.loops->transform_window_terms(shape_.x, tiles, call.operands[0] + block * shape_.x_plane_bytes(),
                                           call.norm_of(block, lanes_), {v + block * block_stride_, v_stride_, lanes_});
    }
    for (const Panel& panel : panels_) {
      for (std::int64_t part = 0; part < panel.width; ++part) {
        shape_.transform_gradient(call, panel.first + part, tiles,
                                  {y + panel.first * block_stride_ + part * lanes_, y_stride_, panel.width * lanes_});
      }
    }
  }

  // Adds one point's sums of all pieces, in order, to those of the first. Goes piece by piece, so memory is read in
  // sequence.
  void add_pieces(float* d, std::int64_t point) const {
    float* const total = d + point * d_stride_;
    const std::int64_t count = shape_.in_blocks * shape_.out_blocks * lanes_ * lanes_;
    for (std::int64_t piece = 1; piece < pieces_; ++piece) {
      const float* const sums = total + piece * points_ * d_stride_;
      for (std::int64_t i = 0; i < count; ++i) total[i] += sums[i];
    }
  }

  void finish(const ConvCall& call, const Panel& panel, std::int64_t in_block, float* d) const {
    const std::int64_t block_floats = lanes_ * lanes_;
    float* sums = d + (panel.first * shape_.in_blocks + in_block * panel.width) * block_floats;
    for (std::int64_t part = 0; part < panel.width; ++part) {
      shape_.loops->finish_gradient({sums + part * lanes_, d_stride_, panel.width * lanes_},
                                    shape_.dweights(call.operands[2], in_block, panel.first + part), call.accumulate);
    }
  }

  WinogradShape shape_;
  std::int64_t lanes_, points_;                  // channels per block (B); points per tile
  std::int64_t piece_tiles_, at_once_, pieces_;  // tiles per piece; tiles transformed together; number of pieces
  std::vector<Panel> panels_;                    // of output channel blocks
  std::int64_t block_stride_;                    // words per channel block of V and Y: [term][B]
  std::int64_t v_stride_, y_stride_, d_stride_;  // words between consecutive points of V, Y, D
  ScratchLayout plan_;
  ScratchPlaces v_{}, y_{};  // per thread: V [point][input block][term][B], Y [point][panel][term][panel's channels]
  std::int64_t d_;           // place of D [piece][point][panel][input channel][panel's channels]
};

class WinogradGradientByWeights final : public ConvKernel {
 public:
  WinogradGradientByWeights(const WinogradShape& shape, const WeightCut& cut)
      : shape_(shape),
        lanes_(shape.lanes()),
        points_(shape.loops->points),
        cut_{std::min(cut.tiles, shape.tiles()), std::min(cut.in_blocks, shape.in_blocks)},
        panels_(panels_of(shape.out_blocks, gradient_panel)),
        groups_(ceil_div(shape.in_blocks, cut_.in_blocks)),
        block_stride_(shape.terms(cut_.tiles) * lanes_),
        v_stride_(padded(shape.in_blocks * block_stride_)),
        y_stride_(padded(shape.out_blocks * block_stride_)),
        d_stride_(padded(cut_.in_blocks * lanes_ * gradient_panel * lanes_)) {
    v_ = plan_.take_floats(points_ * v_stride_);
    y_ = plan_.take_floats(points_ * y_stride_);
    d_ = plan_.take_floats((keeps_sums() ? units() : shape_.threads) * points_ * d_stride_);
  }

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return winograd_name("by weights", *shape_.loops); }

  void run(const ConvCall& call, std::byte* scratch) override {
    for (std::int64_t first = 0; first < shape_.tiles(); first += cut_.tiles) {
      const TileRange range = shape_.tiles_from(first, cut_.tiles);
      const TileOrder tiles = shape_.ordered(range);
      transform(call, tiles, scratch);
      parallel_pieces(shape_.threads, units(), [&](int thread, std::int64_t unit) {
        run_unit(call, range, tiles, unit, scratch,
                 floats_at(scratch, d_) + (keeps_sums() ? unit : thread) * points_ * d_stride_);
      });
    }
  }

 private:
  std::int64_t units() const { return static_cast<std::int64_t>(panels_.size()) * groups_; }
  // If tiles are processed in several rounds, each unit's sums are kept between them.
  bool keeps_sums() const { return cut_.tiles < shape_.tiles(); }

  void transform(const ConvCall& call, const TileOrder& tiles, std::byte* scratch) const {
    float* v = floats_at(scratch, v_);
    float* y = floats_at(scratch, y_);
    constexpr std::int64_t tiles_each = 16;  // even, so pairs of tiles stay together
    const std::int64_t count = tiles.all().count;
    const std::int64_t parts = ceil_div(count, tiles_each);
    const auto part_of = [&](std::int64_t at) {
      const std::int64_t skipped = at % parts * tiles_each;
      return TileRange{skipped, std::min(tiles_each, count - skipped)};
    };
    parallel_for(shape_.threads, shape_.in_blocks * parts, [&](std::int64_t at) {
      const std::int64_t block = at / parts;
      const TileRange part = part_of(at);
      shape_.loops->transform_window_terms(
          shape_.x, tiles.part(part.first, part.count), call.operands[0] + block * shape_.x_plane_bytes(),
          call.norm_of(block, lanes_),
          {v + block * block_stride_ + shape_.terms(part.first) * lanes_, v_stride_, lanes_});
    });
    parallel_for(shape_.threads, static_cast<std::int64_t>(panels_.size()) * parts, [&](std::int64_t at) {
      const Panel& panel = panels_[static_cast<std::size_t>(at / parts)];
      const TileRange part = part_of(at);
      for (std::int64_t block = 0; block < panel.width; ++block) {
        float* to = y + panel.first * block_stride_ + (shape_.terms(part.first) * panel.width + block) * lanes_;
        shape_.transform_gradient(call, panel.first + block, tiles.part(part.first, part.count),
                                  {to, y_stride_, panel.width * lanes_});
      }
    });
  }

  // A unit's share of prefetching a range.
  TileRange part_of(const TileRange& range, std::int64_t unit) const {
    const std::int64_t skipped = cut(range.count, units(), unit);
    return {range.first + skipped, cut(range.count, units(), unit + 1) - skipped};
  }

  void run_unit(const ConvCall& call, const TileRange& range, const TileOrder& tiles, std::int64_t unit,
                std::byte* scratch, float* d) const {
    const Panel& panel = panels_[static_cast<std::size_t>(unit / groups_)];
    const std::int64_t in_first = unit % groups_ * cut_.in_blocks;
    const std::int64_t in_blocks = std::min(cut_.in_blocks, shape_.in_blocks - in_first);
    Prefetch prefetch = shape_.prefetch(call, part_of(shape_.tiles_from(range.first + range.count, cut_.tiles), unit),
                                        gradient_calls(*shape_.loops, in_blocks, panel.width));
    shape_.loops->multiply_gradient({.points = points_,
                                     .v = floats_at(scratch, v_) + in_first * block_stride_,
                                     .v_point_stride = v_stride_,
                                     .v_block_stride = block_stride_,
                                     .y = floats_at(scratch, y_) + panel.first * block_stride_,
                                     .y_point_stride = y_stride_,
                                     .y_block_stride = block_stride_,
                                     .d = d,
                                     .d_point_stride = d_stride_,
                                     .d_block_stride = in_blocks * lanes_ * lanes_,
                                     .tiles = tiles,
                                     .in_blocks = in_blocks,
                                     .out_blocks = panel.width,
                                     .accumulate = range.first > 0 ? Accumulate::add : Accumulate::overwrite,
                                     .prefetch = &prefetch});
    if (range.first + range.count < shape_.tiles()) return;
    for (std::int64_t in = 0; in < in_blocks; ++in) {
      for (std::int64_t out = 0; out < panel.width; ++out) {
        shape_.loops->finish_gradient(
            {d + in * panel.width * lanes_ * lanes_ + out * lanes_, d_stride_, panel.width * lanes_},
            shape_.dweights(call.operands[2], in_first + in, panel.first + out), call.accumulate);
      }
    }
  }

  WinogradShape shape_;
  std::int64_t lanes_, points_;                  // channels per block (B); points per tile
  WeightCut cut_;                                // tiles per round; input blocks per unit
  std::vector<Panel> panels_;                    // of output channel blocks
  std::int64_t groups_;                          // of cut_.in_blocks input blocks
  std::int64_t block_stride_;                    // words per channel block of V and Y: [term][B]
  std::int64_t v_stride_, y_stride_, d_stride_;  // words between consecutive points of V, Y, D
  ScratchLayout plan_;
  // Places of V [point][input block][term][B], Y [point][panel][term][panel's channels] and D [unit or thread][point]
  // [input channel of the unit][panel's channels].
  std::int64_t v_, y_, d_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_winograd_gradient_by_pieces(const WinogradShape& shape, const PieceCut& cut) {
  return std::make_unique<WinogradGradientByPieces>(shape, cut);
}

std::unique_ptr<ConvKernel> make_winograd_gradient_by_weights(const WinogradShape& shape, const WeightCut& cut) {
  return std::make_unique<WinogradGradientByWeights>(shape, cut);
}

}  // namespace lockstep::cpu
