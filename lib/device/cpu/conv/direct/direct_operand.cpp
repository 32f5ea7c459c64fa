// Packed layouts: direct_operand.hpp.
#include "device/cpu/conv/direct/direct_operand.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep::cpu {
bool multiplies_pairs(const ConvProblem& problem, const KernelTarget& target) {
  return target.bf16_products && problem.precision == DType::bf16 && problem.input == Layout::features;
}

bool multiplies_tiles(const ConvProblem& problem, const KernelTarget& target) {
  return multiplies_pairs(problem, target) && multiplies_bf16_tiles(target.set);
}

std::string direct_name(const ConvProblem& problem, const KernelTarget& target) {
  if (!multiplies_pairs(problem, target)) return "direct";
  return multiplies_tiles(problem, target) ? "direct, bf16 products in tiles" : "direct, bf16 products";
}

Operand input_operand(const ConvProblem& problem, std::int64_t lanes) {
  const DType dtype = problem.input == Layout::images ? DType::f32 : problem.precision;
  return {problem.input, dtype, problem.conv.in_channels, problem.h, problem.w, lanes};
}

Operand output_operand(const ConvProblem& problem, std::int64_t lanes) {
  const Conv2d& conv = problem.conv;
  const std::int64_t height = conv.rows().out_size(problem.h);
  const std::int64_t width = conv.columns().out_size(problem.w);
  return {Layout::features, problem.precision, conv.out_channels, height, width, lanes};
}

const float* Operand::values_at(const std::byte* data, const OperandBand& band) const {
  assert(is_readable());
  const PixelStrides at = strides();
  return reinterpret_cast<const float*>(data) + band.first_image * at.image + band.first_block * at.block +
         at.pixel(band.window.first_row, band.window.first_column);
}

OperandBand source_band(const Axes& axes, const Band& band, std::int64_t width, const Operand& operand,
                        std::int64_t first_block, std::int64_t blocks) {
  Span rows = source_span(axes.rows, band.rows);
  rows.first += band.first_row / axes.rows.spacing * axes.rows.advance * axes.rows.step;
  const Span columns = source_span(axes.columns, width);
  const PlaneWindow window = window_of(operand.height, operand.width, rows, columns, axes.step());
  return {band.first_image, band.images, first_block, blocks, window};
}

PixelRows rows_of(const Operand& operand, const std::byte* data, const OperandBand& band) {
  if (operand.layout == Layout::images) return {};
  const PlaneWindow& window = band.window;
  const auto inside = [&](std::int64_t row) { return std::clamp<std::int64_t>(row, 0, operand.height); };
  const std::int64_t top = inside(window.first_row);
  const std::int64_t bottom = inside(window.first_row + (window.rows - 1) * window.step.row + 1);
  const std::int64_t size = size_of(operand.dtype);
  const std::int64_t row_bytes = operand.width * operand.lanes * size;
  const std::int64_t plane_bytes = operand.height * row_bytes;
  const std::int64_t image_bytes = operand.blocks() * plane_bytes;
  return {.first = data + band.first_image * image_bytes + band.first_block * plane_bytes + top * row_bytes,
          .images = band.images,
          .image_bytes = image_bytes,
          .blocks = band.blocks,
          .block_bytes = plane_bytes,
          .bytes = (bottom - top) * row_bytes};
}

bool reads_inside(const Axes& axes, std::int64_t height, std::int64_t width, const Operand& operand) {
  const Span rows = source_span(axes.rows, height);
  const Span columns = source_span(axes.columns, width);
  return rows.first >= 0 && rows.first + rows.count <= operand.height && columns.first >= 0 &&
         columns.first + columns.count <= operand.width;
}

void pack(const ProductLoops& loops, const Operand& operand, const std::byte* data, const OperandBand& band,
          const InputNorm* norm, float* packed) {
  const PixelStrides strides = band.packed_strides(operand);
  const std::int64_t bytes = size_of(operand.dtype);
  for (std::int64_t i = 0; i < band.images; ++i) {
    const std::byte* image = data + (band.first_image + i) * operand.image() * bytes;
    float* const to = packed + i * strides.image;
    if (operand.layout == Layout::images) {
      assert(norm == nullptr && operand.dtype == DType::f32);
      loops.pack_image(reinterpret_cast<const float*>(image), operand.channels, band.window, to);
      continue;
    }
    const auto pack_plane = operand.word == Word::channel_pair ? loops.pack_channel_pairs
                            : operand.dtype == DType::bf16     ? loops.pack_bf16
                                                               : loops.pack_f32;
    for (std::int64_t b = 0; b < band.blocks; ++b) {
      const std::int64_t block = band.first_block + b;
      pack_plane(image + block * operand.plane() * bytes, band.window, norm_of(norm, block, operand.lanes),
                 to + b / operand.unit_blocks * strides.block + b % operand.unit_blocks * operand.block_words(),
                 operand.unit_words());
    }
  }
}

void pack_pairs(const ProductLoops& loops, const Operand& operand, const std::byte* data, const OperandBand& band,
                const ColumnPairs& pairs, const InputNorm* norm, float* packed) {
  assert(operand.layout == Layout::features && operand.dtype == DType::bf16);
  const PixelStrides strides = pairs.strides(band, operand.lanes);
  const std::int64_t bytes = size_of(operand.dtype);
  const Span rows{band.window.first_row, band.window.rows};
  for (std::int64_t tap = 0; tap < pairs.taps; ++tap) {
    const Span columns{band.window.first_column + tap, 2 * pairs.in_row()};
    PlaneWindow window = window_of(operand.height, operand.width, rows, columns, {band.window.step.row, pairs.step});
    window.last_inside = std::min(window.last_inside, pairs.columns);
    for (std::int64_t i = 0; i < band.images; ++i) {
      const std::byte* const image = data + (band.first_image + i) * operand.image() * bytes;
      for (std::int64_t b = 0; b < band.blocks; ++b) {
        const std::int64_t block = band.first_block + b;
        const std::byte* const plane = image + block * operand.plane() * bytes;
        const BlockNorm block_norm = norm_of(norm, block, operand.lanes);
        float* const to = packed + i * strides.image + (b * pairs.taps + tap) * strides.block;
        if (pairs.order == ColumnPairs::Order::by_channels) {
          loops.pack_column_pairs_by_channel(plane, window, block_norm, to, pairs.channel_stride(band));
        } else {
          loops.pack_column_pairs(plane, window, block_norm, to);
        }
      }
    }
  }
}

}  // namespace lockstep::cpu
