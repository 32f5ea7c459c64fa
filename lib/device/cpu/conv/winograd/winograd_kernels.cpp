// Shapes, prefetching and names that the Winograd kernels share. Algorithm and data layouts: winograd_loops.hpp.
#include "device/cpu/conv/winograd/winograd_kernels.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "device/cpu/instruction_sets/loops.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t side = 4;  // height and width of a tile of outputs (of dy at stride 2)

WinogradForm form_of(const ConvProblem& problem) {
  if (problem.conv.stride == 1) return WinogradForm::stride1;
  return problem.direction == Direction::backward_data ? WinogradForm::stride2_backward_data : WinogradForm::stride2;
}

const WinogradForms& forms_for(const ConvProblem& problem, const KernelTarget& target) {
  const WinogradTables& tables = loops_of(target.set).winograd;
  return winograd_takes_pairs(problem, target) ? tables.bf16_pairs : tables.of(problem.precision);
}

struct BlockedMap {
  const std::byte* data;
  std::int64_t blocks;
  std::int64_t pixel_bytes;  // of one pixel of a block
};

// Adds each row of tiles that the range touches: part of the first image, whole images, and part of the last.
void add_tiles(Prefetch& prefetch, const BlockedMap& map, const TileGrid& grid, const TileRange& range) {
  const std::int64_t image_tiles = grid.down * grid.across;
  const std::int64_t row_bytes = grid.width * map.pixel_bytes;
  const std::int64_t plane_bytes = grid.height * row_bytes;
  const std::int64_t end = range.first + range.count;
  for (std::int64_t tile = range.first; tile < end;) {
    const std::int64_t image = tile / image_tiles;
    const std::int64_t first = tile % image_tiles;
    const std::int64_t whole = first == 0 ? (end - tile) / image_tiles : 0;
    const std::int64_t last = whole > 0 ? image_tiles : std::min(first + end - tile, image_tiles);
    const std::int64_t top = first / grid.across * grid.step;
    const std::int64_t bottom = std::min(ceil_div(last, grid.across) * grid.step, grid.height);
    prefetch.add({.first = map.data + image * map.blocks * plane_bytes + top * row_bytes,
                  .images = std::max<std::int64_t>(whole, 1),
                  .image_bytes = map.blocks * plane_bytes,
                  .blocks = map.blocks,
                  .block_bytes = plane_bytes,
                  .bytes = (bottom - top) * row_bytes});
    tile += std::max<std::int64_t>(whole, 1) * image_tiles - first;
  }
}

}  // namespace

std::string winograd_name(const std::string& way, const WinogradLoops& loops) {
  return "winograd " + way + (loops.word_values == 2 ? ", bf16 products" : "");
}

TileRange range_within(std::int64_t tiles, std::int64_t first, std::int64_t count) {
  return {first, std::clamp<std::int64_t>(tiles - first, 0, count)};
}

std::int64_t product_calls(const WinogradLoops& loops, const TileOrder& tiles, std::int64_t out_blocks) {
  std::int64_t calls = 0;
  for (std::int64_t point = 0; point < loops.points; ++point) {
    const std::int64_t count = tiles.needing(point).count;
    for (std::int64_t block = 0; block < out_blocks;) {
      const std::int64_t width = panel_width(out_blocks - block, product_panel);
      calls += ceil_div(count, loops.product_rows[width]);
      block += width;
    }
  }
  return calls;
}

std::int64_t gradient_calls(const WinogradLoops& loops, std::int64_t in_blocks, std::int64_t out_blocks) {
  std::int64_t calls = 0;
  for (const Panel& panel : panels_of(out_blocks, gradient_panel)) {
    calls += in_blocks * loops.lanes / loops.gradient_rows[panel.width];
  }
  return loops.points * calls;
}

WinogradShape::WinogradShape(const ConvProblem& convolution, const KernelTarget& target)
    : problem(convolution), loops(&forms_for(convolution, target).of(form_of(convolution))), threads(target.threads) {
  const Conv2d& conv = problem.conv;
  assert(conv.kernel == 3 && problem.input == Layout::features);
  const std::int64_t stride = conv.stride.height;
  const std::int64_t padding = conv.padding.height;
  assert(conv.stride.is_square() && conv.padding.is_square());
  assert(stride == 1 ? padding <= 2 : stride == 2 && padding == 1);
  in_blocks = ceil_div(conv.in_channels, loops->lanes);
  out_blocks = ceil_div(conv.out_channels, loops->lanes);
  pixel_bytes = loops->lanes * size_of(problem.precision);
  const std::int64_t out_h = conv.rows().out_size(problem.h);
  const std::int64_t out_w = conv.columns().out_size(problem.w);
  const std::int64_t x_image = in_blocks * problem.h * problem.w * loops->lanes;
  const std::int64_t y_image = out_blocks * out_h * out_w * loops->lanes;
  const bool writes_x = problem.direction == Direction::backward_data;
  const std::int64_t down = ceil_div(writes_x ? problem.h : out_h, loops->tile_size);
  const std::int64_t across = ceil_div(writes_x ? problem.w : out_w, loops->tile_size);
  const std::int64_t dy_padding = stride == 1 ? 2 - padding : 0;
  const auto unneeded_at_end = [&](std::int64_t size) {
    const std::int64_t rest = size % loops->tile_size;
    return rest == 0 ? 0 : loops->unneeded_lines(rest);
  };
  unneeded = {unneeded_at_end(writes_x ? problem.h : out_h), unneeded_at_end(writes_x ? problem.w : out_w)};
  x = {problem.h, problem.w, down, across, writes_x ? 0 : padding, x_image, side * stride};
  y = {out_h, out_w, down, across, writes_x ? dy_padding : 0, y_image, side};
}

std::int64_t WinogradShape::plane_bytes(const TileGrid& grid) const { return grid.height * grid.width * pixel_bytes; }

float* WinogradShape::dweights(std::byte* stored, std::int64_t in_block, std::int64_t out_block) const {
  return reinterpret_cast<float*>(stored) + (out_block * in_blocks + in_block) * taps * loops->lanes * loops->lanes;
}

WinogradPass::WinogradPass(const WinogradShape& shape)
    : loops(shape.loops),
      threads(shape.threads),
      tiles(shape.tiles()),
      in_blocks(shape.in_blocks),
      out_blocks(shape.out_blocks),
      pixel_bytes(shape.pixel_bytes),
      from(shape.x),
      to(shape.y),
      unneeded(shape.unneeded),
      from_plane_bytes(shape.x_plane_bytes()),
      to_plane_bytes(shape.y_plane_bytes()) {
  if (shape.problem.direction == Direction::backward_data) {
    std::swap(in_blocks, out_blocks);
    std::swap(from, to);
    std::swap(from_plane_bytes, to_plane_bytes);
    order = WeightOrder::turned;
  }
}

const float* WinogradPass::weights(const std::byte* stored, std::int64_t in_block, std::int64_t out_block) const {
  const std::int64_t block =
      order == WeightOrder::stored ? out_block * in_blocks + in_block : in_block * out_blocks + out_block;
  return reinterpret_cast<const float*>(stored) + block * taps * loops->lanes * loops->lanes;
}

Prefetch WinogradShape::prefetch(const ConvCall& call, const TileRange& next, std::int64_t calls) const {
  Prefetch prefetch;
  add_tiles(prefetch, {call.operands[0], in_blocks, pixel_bytes}, x, next);
  add_tiles(prefetch, {call.operands[1], out_blocks, pixel_bytes}, y, next);
  if (call.dy_norm != nullptr) {
    add_tiles(prefetch, {call.dy_norm->x, out_blocks, pixel_bytes}, y, next);
    if (call.dy_norm->dx != call.operands[1]) add_tiles(prefetch, {call.dy_norm->dx, out_blocks, pixel_bytes}, y, next);
  }
  prefetch.spread_over(calls);
  return prefetch;
}

void WinogradShape::transform_gradient(const ConvCall& call, std::int64_t block, const Tiles& tiles,
                                       const PointVectors& points) const {
  const std::int64_t plane = block * y_plane_bytes();
  BlockGradient norm;
  if (call.dy_norm != nullptr) {
    norm = {call.dy_norm->rows + block * norm_rows * lanes(), call.dy_norm->x + plane, call.dy_norm->dx + plane};
  }
  loops->transform_gradient(y, tiles, call.operands[1] + plane, norm, points);
}

Prefetch WinogradPass::prefetch(const ConvCall& call, const TileRange& range, const TileRange& next,
                                std::int64_t calls) const {
  Prefetch prefetch;
  add_tiles(prefetch, {call.operands[2], out_blocks, pixel_bytes}, to, range);
  if (call.mask_x != nullptr) add_tiles(prefetch, {call.mask_x, out_blocks, pixel_bytes}, to, range);
  if (call.mask_y != nullptr) add_tiles(prefetch, {call.mask_y, out_blocks, pixel_bytes}, to, range);
  add_tiles(prefetch, {call.operands[0], in_blocks, pixel_bytes}, from, next);
  prefetch.spread_over(calls);
  return prefetch;
}

BlockOutput WinogradPass::output(const ConvCall& call, std::int64_t block, const BlockSums& sums) const {
  assert(call.mask_x == nullptr || sums.first != nullptr);
  BlockOutput output;
  output.sums = sums;
  output.accumulate = call.accumulate;
  if (call.mask_x != nullptr) {
    output.norm_x = call.mask_x + block * to_plane_bytes;
    output.norm_rows = call.norm_of(block, loops->lanes).rows;
    output.activation = call.activation_gradient();
    if (output.activation == ActivationGradient::relu_of_y) output.mask_y = call.mask_y + block * to_plane_bytes;
  }
  return output;
}

}  // namespace lockstep::cpu
