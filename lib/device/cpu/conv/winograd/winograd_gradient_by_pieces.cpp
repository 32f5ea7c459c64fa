#include <algorithm>

#include "device/cpu/conv/winograd/winograd_pass.hpp"

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
        v_stride_(padded(shape.in_blocks * at_once_ * lanes_)),
        y_stride_(padded(shape.out_blocks * at_once_ * lanes_)),
        d_stride_(padded(shape.in_blocks * shape.out_blocks * lanes_ * lanes_)) {
    for (int thread = 0; thread < shape_.threads; ++thread) {
      v_.push_back(plan_.take_floats(points_ * v_stride_));
      y_.push_back(plan_.take_floats(points_ * y_stride_));
    }
    d_ = plan_.take_floats(pieces_ * points_ * d_stride_);
  }

  std::int64_t scratch_bytes() const override { return plan_.bytes(); }
  std::string name() const override { return "winograd by pieces"; }

  void run(const ConvCall& call, std::byte* scratch) override {
    parallel_pieces(shape_.threads, pieces_, [&](int thread, std::int64_t piece) {
      const auto place = static_cast<std::size_t>(thread);
      sum_piece(call, piece, floats_at(scratch, v_[place]), floats_at(scratch, y_[place]),
                floats_at(scratch, d_) + piece * points_ * d_stride_);
    });
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
      transform(call, range, v, y);
      shape_.loops->multiply_gradient({.points = points_,
                                       .v = v,
                                       .v_point_stride = v_stride_,
                                       .v_block_stride = at_once_ * lanes_,
                                       .y = y,
                                       .y_point_stride = y_stride_,
                                       .y_block_stride = at_once_ * lanes_,
                                       .d = d,
                                       .d_point_stride = d_stride_,
                                       .d_block_stride = shape_.in_blocks * lanes_ * lanes_,
                                       .tiles = range.count,
                                       .in_blocks = shape_.in_blocks,
                                       .out_blocks = shape_.out_blocks,
                                       .accumulate = first > begin ? Accumulate::add : Accumulate::overwrite});
    }
  }

  void transform(const ConvCall& call, const TileRange& range, float* v, float* y) const {
    for (std::int64_t block = 0; block < shape_.in_blocks; ++block) {
      shape_.loops->transform_windows(shape_.x, range, call.operands[0] + block * shape_.x_plane_bytes(),
                                      call.norm_of(block, lanes_), {v + block * at_once_ * lanes_, v_stride_, lanes_});
    }
    for (const Panel& panel : panels_) {
      for (std::int64_t part = 0; part < panel.width; ++part) {
        shape_.loops->transform_gradient(
            shape_.y, range, call.operands[1] + (panel.first + part) * shape_.y_plane_bytes(),
            {y + panel.first * at_once_ * lanes_ + part * lanes_, y_stride_, panel.width * lanes_});
      }
    }
  }

  void finish(const ConvCall& call, const Panel& panel, std::int64_t in_block, float* d) const {
    const std::int64_t block_floats = lanes_ * lanes_;
    float* sums = d + (panel.first * shape_.in_blocks + in_block * panel.width) * block_floats;
    for (std::int64_t part = 0; part < panel.width; ++part) {
      shape_.loops->finish_gradient({sums + part * lanes_, d_stride_, panel.width * lanes_}, pieces_,
                                    points_ * d_stride_,
                                    shape_.dweights(call.operands[2], in_block, panel.first + part), call.accumulate);
    }
  }

  WinogradShape shape_;
  std::int64_t lanes_, points_;
  std::int64_t piece_tiles_, at_once_, pieces_;
  std::vector<Panel> panels_;
  std::int64_t v_stride_, y_stride_, d_stride_;
  ScratchPlan plan_;
  std::vector<std::int64_t> v_, y_;  // by thread
  std::int64_t d_;                   // [pieces][points]
};

}  // namespace

std::unique_ptr<ConvKernel> make_winograd_gradient_by_pieces(const WinogradShape& shape, const PieceCut& cut) {
  return std::make_unique<WinogradGradientByPieces>(shape, cut);
}

}  // namespace lockstep::cpu
