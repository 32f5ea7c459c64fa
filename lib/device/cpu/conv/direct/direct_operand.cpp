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

namespace {

// Rows of a channel block of an image, and where they go.
struct PackedRows {
  const std::byte* image;
  std::int64_t block;
  PlaneWindow window;
  float* to;
};

void pack_features(const ProductLoops& loops, const Operand& operand, const InputNorm* norm, const PackedRows& rows) {
  const auto pack_plane = operand.word == Word::channel_pair ? loops.pack_channel_pairs
                          : operand.dtype == DType::bf16     ? loops.pack_bf16
                                                             : loops.pack_f32;
  pack_plane(rows.image + rows.block * operand.plane() * size_of(operand.dtype), rows.window,
             norm_of(norm, rows.block, operand.lanes), rows.to, operand.set_images * operand.unit_words());
}

// Row by row, because the pixels of a row that several images and blocks fill stay in the L1 cache.
void pack_set(const ProductLoops& loops, const Operand& operand, const std::byte* image, std::int64_t images,
              const OperandBand& band, const InputNorm* norm, float* packed) {
  const PixelStrides strides = band.packed_strides(operand);
  PackedRows rows{image, 0, band.window, nullptr};
  rows.window.rows = 1;
  for (std::int64_t unit = 0; unit < band.blocks / operand.unit_blocks; ++unit) {
    for (std::int64_t row = 0; row < band.window.rows; ++row) {
      for (std::int64_t i = 0; i < operand.set_images; ++i) {
        rows.image = image + i * operand.image() * size_of(operand.dtype);
        rows.window.first_row = i < images ? band.window.first_row + row * band.window.step.row : operand.height;
        for (std::int64_t b = 0; b < operand.unit_blocks; ++b) {
          rows.block = band.first_block + unit * operand.unit_blocks + b;
          rows.to =
              packed + unit * strides.block + row * strides.row + i * operand.unit_words() + b * operand.block_words();
          pack_features(loops, operand, norm, rows);
        }
      }
    }
  }
}

}  // namespace

void pack(const ProductLoops& loops, const Operand& operand, const std::byte* data, const OperandBand& band,
          const InputNorm* norm, float* packed) {
  const PixelStrides strides = band.packed_strides(operand);
  const std::int64_t image_bytes = operand.image() * size_of(operand.dtype);
  for (std::int64_t i = 0; i < band.images; i += operand.set_images, packed += strides.image) {
    const std::byte* const image = data + (band.first_image + i) * image_bytes;
    if (operand.layout == Layout::images) {
      assert(norm == nullptr && operand.dtype == DType::f32);
      loops.pack_image(reinterpret_cast<const float*>(image), operand.channels, band.window, packed);
    } else if (operand.set_images > 1) {
      pack_set(loops, operand, image, std::min(operand.set_images, band.images - i), band, norm, packed);
    } else {
      for (std::int64_t b = 0; b < band.blocks; ++b) {
        float* const to =
            packed + b / operand.unit_blocks * strides.block + b % operand.unit_blocks * operand.block_words();
        pack_features(loops, operand, norm, {image, band.first_block + b, band.window, to});
      }
    }
  }
}

PixelStrides ImagePairs::strides(const OperandBand& band) const {
  const std::int64_t pixel = order == Order::by_pixels ? pairs * lanes : pairs;
  const std::int64_t block =
      order == Order::by_pixels ? spread_strides(1, 1, parts, part_stride(band)).block : lanes * channel_stride(band);
  return {band.blocks * block, block, columns * pixel, pixel};
}

std::int64_t ImagePairs::channel_stride(const OperandBand& band) const {
  return order == Order::by_pixels ? 1 : spread_strides(1, 1, parts, part_stride(band)).block;
}

std::int64_t ImagePairs::part_stride(const OperandBand& band) const {
  const std::int64_t words = band.window.rows * columns * pairs;
  return order == Order::by_pixels ? words * lanes : ceil_div(words, lanes) * lanes;
}

void pack_pairs(const ProductLoops& loops, const Operand& operand, const std::byte* data, const OperandBand& band,
                const ImagePairs& pairs, const InputNorm* norm, float* packed) {
  assert(operand.layout == Layout::features && operand.dtype == DType::bf16);
  const PixelStrides strides = pairs.strides(band);
  const std::int64_t bytes = size_of(operand.dtype);
  const Span rows{band.window.first_row, band.window.rows};
  const Steps steps{band.window.step.row, band.window.step.column * pairs.parts};
  for (std::int64_t part = 0; part < pairs.parts; ++part) {
    const Span columns{band.window.first_column + part * band.window.step.column, pairs.columns};
    const PlaneWindow window = window_of(operand.height, operand.width, rows, columns, steps);
    for (std::int64_t first = 0; first < band.images; first += pairs.images()) {
      const std::byte* const image = data + (band.first_image + first) * operand.image() * bytes;
      const std::int64_t images = std::min(pairs.images(), band.images - first);
      for (std::int64_t b = 0; b < band.blocks; ++b) {
        const std::int64_t block = band.first_block + b;
        const ImagePlanes planes{image + block * operand.plane() * bytes, images, operand.image(), pairs.pairs};
        float* const to =
            packed + first / pairs.images() * strides.image + b * strides.block + part * pairs.part_stride(band);
        if (pairs.order == ImagePairs::Order::by_channels) {
          loops.pack_image_pairs_by_channel(planes, window, norm_of(norm, block, operand.lanes), to,
                                            pairs.channel_stride(band));
        } else {
          loops.pack_image_pairs(planes, window, norm_of(norm, block, operand.lanes), to);
        }
      }
    }
  }
}

}  // namespace lockstep::cpu
