#include <algorithm>

#include "device/cpu/conv/winograd/winograd_pass.hpp"

namespace lockstep::cpu {
namespace {

class WinogradByOutputs final : public ConvKernel {
 public:
  WinogradByOutputs(const WinogradShape& shape, const OutputCut& cut)
      : pass_(shape),
        lanes_(shape.lanes()),
        points_(shape.loops->points),
        cut_{std::min(cut.tiles, pass_.tiles), std::min(cut.out_blocks, pass_.out_blocks),
             std::min(cut.in_blocks, pass_.in_blocks)},
        groups_(ceil_div(pass_.out_blocks, cut_.out_blocks)),
        u_stride_(padded(cut_.in_blocks * cut_.out_blocks * lanes_ * lanes_)),
        v_stride_(padded(pass_.in_blocks * cut_.tiles * lanes_)),
        m_stride_(padded(cut_.out_blocks * cut_.tiles * lanes_)) {
    v_ = plan_.take_floats(points_ * v_stride_);
    for (int thread = 0; thread < pass_.threads; ++thread) {
      u_.push_back(plan_.take_floats(points_ * u_stride_));
      m_.push_back(plan_.take_floats(points_ * m_stride_));
    }
  }

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return "winograd by outputs"; }

  void run(const ConvCall& call, std::byte* scratch) override {
    if (call.sums != nullptr) {
      std::fill_n(call.sums->first, pass_.out_blocks * lanes_, 0.0);
      std::fill_n(call.sums->second, pass_.out_blocks * lanes_, 0.0);
    }
    for (std::int64_t first = 0; first < pass_.tiles; first += cut_.tiles) {
      const TileRange range{first, std::min(cut_.tiles, pass_.tiles - first)};
      transform_windows(call, range, scratch);
      parallel_pieces(pass_.threads, groups_, [&](int thread, std::int64_t group) {
        const auto place = static_cast<std::size_t>(thread);
        run_group(call, range, group * cut_.out_blocks, floats_at(scratch, v_), floats_at(scratch, u_[place]),
                  floats_at(scratch, m_[place]));
      });
    }
  }

 private:
  std::int64_t block_stride() const { return cut_.tiles * lanes_; }

  void transform_windows(const ConvCall& call, const TileRange& range, std::byte* scratch) const {
    float* v = floats_at(scratch, v_);
    constexpr std::int64_t tiles_each = 16;
    const std::int64_t parts = ceil_div(range.count, tiles_each);
    parallel_for(pass_.threads, pass_.in_blocks * parts, [&](std::int64_t at) {
      const std::int64_t block = at / parts;
      const std::int64_t skipped = at % parts * tiles_each;
      const TileRange part{range.first + skipped, std::min(tiles_each, range.count - skipped)};
      pass_.loops->transform_windows(pass_.from, part, call.operands[0] + block * pass_.from_plane_bytes,
                                     pass_.input(call, block),
                                     {v + block * block_stride() + skipped * lanes_, v_stride_, lanes_});
    });
  }

  // All output of the group of channel blocks that begins at `first`.
  void run_group(const ConvCall& call, const TileRange& range, std::int64_t first, const float* v, float* u,
                 float* m) const {
    const std::int64_t out_blocks = std::min(cut_.out_blocks, pass_.out_blocks - first);
    for (std::int64_t in_first = 0; in_first < pass_.in_blocks; in_first += cut_.in_blocks) {
      const std::int64_t in_blocks = std::min(cut_.in_blocks, pass_.in_blocks - in_first);
      for (std::int64_t out = 0; out < out_blocks; ++out) {
        const std::int64_t panel = out / product_panel * product_panel;
        const std::int64_t width = panel_width(out_blocks - panel, product_panel);
        float* to = u + panel * in_blocks * lanes_ * lanes_ + (out - panel) * lanes_;
        for (std::int64_t in = 0; in < in_blocks; ++in, to += width * lanes_ * lanes_) {
          pass_.loops->transform_weights(pass_.weights(call.operands[1], in_first + in, first + out), pass_.order,
                                         {to, u_stride_, width * lanes_});
        }
      }
      pass_.loops->multiply({.points = points_,
                             .v = v + in_first * block_stride(),
                             .v_point_stride = v_stride_,
                             .v_block_stride = block_stride(),
                             .u = u,
                             .u_point_stride = u_stride_,
                             .m = m,
                             .m_point_stride = m_stride_,
                             .m_block_stride = block_stride(),
                             .tiles = range.count,
                             .in_blocks = in_blocks,
                             .out_blocks = out_blocks,
                             .accumulate = in_first > 0 ? Accumulate::add : Accumulate::overwrite});
    }
    for (std::int64_t out = 0; out < out_blocks; ++out) {
      BlockSums sums;
      if (call.sums != nullptr) {
        sums = {call.sums->first + (first + out) * lanes_, call.sums->second + (first + out) * lanes_};
      }
      pass_.loops->transform_outputs(pass_.to, range, {m + out * block_stride(), m_stride_, lanes_},
                                     call.operands[2] + (first + out) * pass_.to_plane_bytes,
                                     pass_.output(call, first + out, sums));
    }
  }

  WinogradPass pass_;
  std::int64_t lanes_, points_;
  OutputCut cut_;
  std::int64_t groups_;
  std::int64_t u_stride_, v_stride_, m_stride_;
  ScratchPlan plan_;
  std::int64_t v_;
  std::vector<std::int64_t> u_, m_;  // by thread
};

}  // namespace

std::unique_ptr<ConvKernel> make_winograd_by_outputs(const WinogradShape& shape, const OutputCut& cut) {
  return std::make_unique<WinogradByOutputs>(shape, cut);
}

}  // namespace lockstep::cpu
