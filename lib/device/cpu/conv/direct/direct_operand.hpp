// How direct kernels read a feature map or images: in place if possible, otherwise from a packed copy of a band. The
// copy is fp32 or pairs of bf16, and includes the padding. Packing features also applies a deferred norm.
#pragma once

#include <algorithm>
#include <string>

#include "device/cpu/conv/conv_kernel.hpp"
#include "device/cpu/conv/direct/direct_geometry.hpp"
#include "device/cpu/products/product_loops.hpp"

namespace lockstep::cpu {

struct OperandBand;

// The content of a 32-bit word of an operand.
enum class Word { f32, channel_pair };

// Packed images have contiguous channels: [image][row][column][channel].
struct Operand {
  Layout layout;
  DType dtype;
  std::int64_t channels, height, width;
  std::int64_t lanes;
  Word word = Word::f32;
  std::int64_t unit_blocks = 1;  // channel blocks of a pixel that are contiguous in a packed band

  std::int64_t block_channels() const { return layout == Layout::images ? channels : lanes; }
  std::int64_t blocks() const { return ceil_div(channels, block_channels()); }
  std::int64_t channels_in(std::int64_t block) const {
    return std::min(channels - block * block_channels(), block_channels());
  }
  std::int64_t words_of(std::int64_t values) const { return word == Word::f32 ? values : ceil_div(values, 2); }
  std::int64_t block_words() const { return words_of(block_channels()); }  // per pixel and block
  std::int64_t unit_words() const { return unit_blocks * block_words(); }  // per pixel and unit
  std::int64_t units() const { return blocks() / unit_blocks; }
  std::int64_t words_in(std::int64_t unit) const {  // without padding channels
    return words_of(std::min(channels - unit * unit_blocks * block_channels(), unit_blocks * block_channels()));
  }
  std::int64_t plane() const { return height * width * (layout == Layout::images ? 1 : lanes); }
  std::int64_t image() const { return plane() * (layout == Layout::images ? channels : blocks()); }

  bool is_readable() const {
    return layout == Layout::features && (dtype == DType::f32) == (word == Word::f32) && unit_blocks == 1;
  }
  PixelStrides strides() const { return dense_strides(blocks(), height, width, block_words()); }  // in place, in words
  // The start of a band, for operands that are readable in place.
  const float* values_at(const std::byte* data, const OperandBand& band) const;
};

// The part of an operand that a band of results reads.
struct OperandBand {
  std::int64_t first_image, images;
  std::int64_t first_block, blocks;
  PlaneWindow window;

  PixelStrides packed_strides(const Operand& operand) const {
    return spread_strides(blocks / operand.unit_blocks, window.rows, window.columns, operand.unit_words());
  }
};

// Whether products are of bf16 pairs. Only for features; images are fp32.
bool multiplies_pairs(const ConvProblem& problem, const KernelTarget& target);
// Whether these pairs are multiplied in AMX tiles.
bool multiplies_tiles(const ConvProblem& problem, const KernelTarget& target);
std::string direct_name(const ConvProblem& problem, const KernelTarget& target);  // for ConvKernel::name()

Operand input_operand(const ConvProblem& problem, std::int64_t lanes);   // x, dx
Operand output_operand(const ConvProblem& problem, std::int64_t lanes);  // y, dy

// What a band of results, `width` pixels wide, reads of `blocks` blocks.
OperandBand source_band(const Axes& axes, const Band& band, std::int64_t width, const Operand& operand,
                        std::int64_t first_block, std::int64_t blocks);
// The rows of a feature map that a band of results reads, without padding. Empty for images.
PixelRows rows_of(const Operand& operand, const std::byte* data, const OperandBand& band);
// Whether no result reads padding.
bool reads_inside(const Axes& axes, std::int64_t height, std::int64_t width, const Operand& operand);

// Copies a band to `packed`. `norm` may be null, and must be for images.
void pack(const ProductLoops& loops, const Operand& operand, const std::byte* data, const OperandBand& band,
          const InputNorm* norm, float* packed);

// A band of bf16 features for sums over pixels, in pairs of columns: [image][block][tap][row][pair][B], or by channels:
// [image][block][tap][B][row][pair]. A tap is a column of the kernel. Each tap has its own copy of the columns that it
// meets, because pairs that start at odd columns differ from those that start at even ones.
struct ColumnPairs {
  enum class Order { by_pixels, by_channels };

  std::int64_t columns;  // columns that a tap meets
  std::int64_t step;     // from one of them to the next
  std::int64_t taps;
  Order order;

  std::int64_t in_row() const { return ceil_div(columns, 2); }
  // Strides of taps: `block` is the distance between consecutive taps.
  PixelStrides strides(const OperandBand& band, std::int64_t lanes) const {
    if (order == Order::by_pixels) return spread_strides(band.blocks * taps, band.window.rows, in_row(), lanes);
    const std::int64_t tap = lanes * channel_stride(band);
    return {band.blocks * taps * tap, tap, in_row(), 1};
  }
  std::int64_t channel_stride(const OperandBand& band) const {
    return order == Order::by_pixels ? 1 : spread_strides(1, band.window.rows, in_row(), 1).block;
  }
};

// Copies a band in pairs of columns. Uses the rows of `band`, and its first column as that of the first tap.
void pack_pairs(const ProductLoops& loops, const Operand& operand, const std::byte* data, const OperandBand& band,
                const ColumnPairs& pairs, const InputNorm* norm, float* packed);

}  // namespace lockstep::cpu
