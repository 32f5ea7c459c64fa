#include <algorithm>

#include "device/cpu/conv/output_sums.hpp"
#include "device/cpu/conv/winograd/winograd_pass.hpp"

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
        u_stride_(padded(pass_.in_blocks * pass_.out_blocks * lanes_ * lanes_)),
        v_stride_(padded(pass_.in_blocks * at_once_ * lanes_)),
        m_stride_(padded(pass_.out_blocks * at_once_ * lanes_)),
        piece_sums_{pieces_, pass_.out_blocks, lanes_} {
    u_ = plan_.take_floats(points_ * u_stride_);
    for (int thread = 0; thread < pass_.threads; ++thread) {
      v_.push_back(plan_.take_floats(points_ * v_stride_));
      m_.push_back(plan_.take_floats(points_ * m_stride_));
    }
    sums_ = plan_.take(piece_sums_.bytes());
  }

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return "winograd by tiles"; }

  void run(const ConvCall& call, std::byte* scratch) override {
    parallel_for(pass_.threads, pass_.in_blocks * pass_.out_blocks, [&](std::int64_t at) {
      transform_weights(call.operands[1], at % pass_.in_blocks, at / pass_.in_blocks, floats_at(scratch, u_));
    });
    parallel_pieces(pass_.threads, pieces_, [&](int thread, std::int64_t piece) {
      const auto place = static_cast<std::size_t>(thread);
      run_piece(call, piece, scratch, floats_at(scratch, v_[place]), floats_at(scratch, m_[place]));
    });
    if (call.sums != nullptr) piece_sums_.add_up(scratch + sums_, *call.sums);
  }

 private:
  void transform_weights(const std::byte* stored, std::int64_t in_block, std::int64_t out_block, float* u) const {
    const std::int64_t first = out_block / product_panel * product_panel;  // of its panel
    const std::int64_t width = panel_width(pass_.out_blocks - first, product_panel);
    float* to = u + (first * pass_.in_blocks + in_block * width) * lanes_ * lanes_ + (out_block - first) * lanes_;
    pass_.loops->transform_weights(pass_.weights(stored, in_block, out_block), pass_.order,
                                   {to, u_stride_, width * lanes_});
  }

  void run_piece(const ConvCall& call, std::int64_t piece, std::byte* scratch, float* v, float* m) const {
    const TileRange range{piece * at_once_, std::min(at_once_, pass_.tiles - piece * at_once_)};
    const std::int64_t block_stride = at_once_ * lanes_;
    for (std::int64_t block = 0; block < pass_.in_blocks; ++block) {
      pass_.loops->transform_windows(pass_.from, range, call.operands[0] + block * pass_.from_plane_bytes,
                                     pass_.input(call, block), {v + block * block_stride, v_stride_, lanes_});
    }
    pass_.loops->multiply({.points = points_,
                           .v = v,
                           .v_point_stride = v_stride_,
                           .v_block_stride = block_stride,
                           .u = floats_at(scratch, u_),
                           .u_point_stride = u_stride_,
                           .m = m,
                           .m_point_stride = m_stride_,
                           .m_block_stride = block_stride,
                           .tiles = range.count,
                           .in_blocks = pass_.in_blocks,
                           .out_blocks = pass_.out_blocks,
                           .accumulate = Accumulate::overwrite});
    for (std::int64_t block = 0; block < pass_.out_blocks; ++block) {
      BlockSums sums;
      if (call.sums != nullptr) {
        double* values = piece_sums_.of(scratch + sums_, piece, block);
        std::fill_n(values, 2 * lanes_, 0.0);
        sums = {values, values + lanes_};
      }
      pass_.loops->transform_outputs(pass_.to, range, {m + block * block_stride, m_stride_, lanes_},
                                     call.operands[2] + block * pass_.to_plane_bytes, pass_.output(call, block, sums));
    }
  }

  WinogradPass pass_;
  std::int64_t lanes_, points_;
  std::int64_t at_once_, pieces_;  // tiles of a piece
  std::int64_t u_stride_, v_stride_, m_stride_;
  PieceSums piece_sums_;
  ScratchPlan plan_;
  std::int64_t u_;
  std::vector<std::int64_t> v_, m_;  // by thread
  std::int64_t sums_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_winograd_by_tiles(const WinogradShape& shape, std::int64_t tiles_at_once) {
  return std::make_unique<WinogradByTiles>(shape, tiles_at_once);
}

}  // namespace lockstep::cpu
