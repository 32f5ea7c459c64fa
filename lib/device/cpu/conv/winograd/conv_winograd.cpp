// Decides whether Winograd is used, and how its work is split. All decisions are fixed functions of the shape, measured
// on a Zen 3 with AVX2 and SSE2. The optima are flat: twice or half the size costs a few percent.
#include <algorithm>

#include "device/cpu/conv/winograd/winograd_kernels.hpp"
#include "device/cpu/layout/cpu_layout.hpp"

namespace lockstep::cpu {
namespace {

// Bytes of all transformed weights (U); the sums of their gradients (D) take as much.
std::int64_t transformed_bytes(const WinogradShape& shape) {
  return shape.loops->points * shape.in_blocks * shape.out_blocks * shape.lanes() * shape.lanes() * size_of(DType::f32);
}

// Half of all blocks, but at least `least` and at most `most` channels.
std::int64_t half_of_blocks(std::int64_t blocks, std::int64_t least, std::int64_t most, std::int64_t lanes) {
  return std::clamp(blocks / 2, least / lanes, most / lanes);
}

std::unique_ptr<ConvKernel> make_pass(const WinogradShape& shape) {
  constexpr std::int64_t max_weight_bytes = std::int64_t{16} << 20;  // fit a last-level cache together with the tiles
  constexpr std::int64_t least_pieces = 4;
  const std::int64_t lanes = shape.lanes();
  const std::int64_t tiles = shape.tiles();
  // Fills whole register tiles, leaves enough pieces for the threads, and keeps the 81 points of stride 2 in the L2
  // cache.
  const std::int64_t at_once = shape.problem.conv.stride == 1 && tiles >= 32 * 24 ? 24 : 12;
  if (transformed_bytes(shape) <= max_weight_bytes && tiles >= least_pieces * at_once) {
    return make_winograd_by_tiles(shape, at_once);
  }
  return make_winograd_by_outputs(shape, {.tiles = 132, .out_blocks = 32 / lanes, .in_blocks = 64 / lanes});
}

std::unique_ptr<ConvKernel> make_gradient(const WinogradShape& shape) {
  const std::int64_t tiles = shape.tiles();
  const std::int64_t sum_bytes = transformed_bytes(shape);      // of one piece
  constexpr std::int64_t small_sums = std::int64_t{160} << 10;  // 32 x 32 channels
  if (sum_bytes <= small_sums) return make_winograd_gradient_by_pieces(shape, {.tiles = 256, .tiles_at_once = 32});
  // 64 x 64 channels, if the L2 cache holds them: processors with AVX-512 have 1 MB and more. Pieces are large enough
  // to keep adding them up cheap, and numerous enough for several threads.
  constexpr std::int64_t max_sums = std::int64_t{640} << 10;
  constexpr std::int64_t least_tiles = 512;
  if (shape.lanes() == 16 && sum_bytes <= max_sums && tiles >= least_tiles) {
    return make_winograd_gradient_by_pieces(shape,
                                            {.tiles = tiles >= 4 * least_tiles ? 256 : 128, .tiles_at_once = 32});
  }
  const std::int64_t in_blocks = half_of_blocks(shape.in_blocks, 32, 128, shape.lanes());
  return make_winograd_gradient_by_weights(shape, {.tiles = 64, .in_blocks = in_blocks});
}

// Weights of fewer input channels are not stored in blocks.
bool computes(const ConvProblem& problem) {
  const Conv2d& conv = problem.conv;
  const bool has_padding = conv.padding.is_square() && conv.padding.height <= 2;
  const bool has_form = conv.stride == 1 ? has_padding : conv.stride == 2 && conv.padding == 1;
  return conv.kernel == 3 && has_form && problem.input == Layout::features && conv.in_channels > max_image_channels;
}

}  // namespace

bool winograd_pays(const ConvProblem& problem) {
  if (!computes(problem)) return false;
  const Conv2d& conv = problem.conv;
  const bool is_strided = conv.stride == 2;
  // Tiles cover what a pass writes. At stride 2 they cover y in both directions, because dx has four times its pixels.
  const bool writes_x = problem.direction == Direction::backward_data && !is_strided;
  const std::int64_t height = writes_x ? problem.h : conv.rows().out_size(problem.h);
  const std::int64_t width = writes_x ? problem.w : conv.columns().out_size(problem.w);
  constexpr std::int64_t side = 4;
  const std::int64_t tiles = ceil_div(height, side) * ceil_div(width, side);
  // Average output pixels of a tile's 16. A tile takes 36 (stride 2: 81) products and the transforms; direct takes 9
  // per pixel.
  const std::int64_t least_tile_pixels = is_strided ? 12 : 6;
  // With fewer tiles, transforming the weights costs more than it saves. With fewer channels, transforming the tiles
  // does.
  const std::int64_t least_tiles = is_strided ? 32 : 6;
  const std::int64_t least_channels = is_strided ? 32 : 1;
  return height * width >= least_tile_pixels * tiles && problem.n * tiles >= least_tiles &&
         std::min(conv.in_channels, conv.out_channels) >= least_channels;
}

bool winograd_takes_pairs(const ConvProblem& problem, const KernelTarget& target) {
  const WinogradPairs pairs = target.winograd_pairs;
  const bool is_wanted =
      pairs == WinogradPairs::backward ? problem.direction != Direction::forward : pairs == WinogradPairs::all;
  return is_wanted && problem.precision == DType::bf16 && multiplies_bf16(target.set);
}

std::unique_ptr<ConvKernel> make_winograd(const ConvProblem& problem, const KernelTarget& target) {
  if (!computes(problem)) return nullptr;
  const WinogradShape shape(problem, target);
  return problem.direction == Direction::backward_weight ? make_gradient(shape) : make_pass(shape);
}

}  // namespace lockstep::cpu
