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
  std::int64_t set_images = 1;   // images of which the same pixel is contiguous there

  std::int64_t block_channels() const { return layout == Layout::images ? channels : lanes; }
  std::int64_t blocks() const { return ceil_div(channels, block_channels()); }
  std::int64_t channels_in(std::int64_t block) const {
    return std::min(channels - block * block_channels(), block_channels());
  }
  std::int64_t words_of(std::int64_t values) const { return word == Word::f32 ? values : ceil_div(values, 2); }
  std::int64_t block_words() const { return words_of(block_channels()); }  // per pixel and block
  std::int64_t unit_words() const { return unit_blocks * block_words(); }  // per pixel and unit
  std::int64_t units() const { return blocks() / unit_blocks; }
  std::int64_t words_in(std::int64_t unit) const {  // without padding channels, unless a unit fills a tile's row
    if (unit_blocks > 1) return unit_words();
    return words_of(channels_in(unit));
  }
  std::int64_t plane() const { return height * width * (layout == Layout::images ? 1 : lanes); }
  std::int64_t image() const { return plane() * (layout == Layout::images ? channels : blocks()); }

  bool is_readable() const {
    return layout == Layout::features && (dtype == DType::f32) == (word == Word::f32) && unit_blocks == 1 &&
           set_images == 1;
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

  // [set][unit][row][column][image][words]
  PixelStrides packed_strides(const Operand& operand) const {
    const std::int64_t pixel = operand.set_images * operand.unit_words();
    return spread_strides(blocks / operand.unit_blocks, window.rows, window.columns, pixel);
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

// Copies a band of whole sets to `packed`; images after the last one are zero. `norm` may be null, and must be for
// images.
void pack(const ProductLoops& loops, const Operand& operand, const std::byte* data, const OperandBand& band,
          const InputNorm* norm, float* packed);

// A band of bf16 features for sums over pixels, in pairs of images: [set][block][part][row][column][pair][B] or, by
// channels, [set][block][B][part][row][column][pair]. A set is 2 * `pairs` consecutive images, zero after the last one
// of the batch. With two parts, the first has the even columns, the second the odd ones, and likewise with more: so
// columns that neighboring results meet are neighbors, too.
struct ImagePairs {
  enum class Order { by_pixels, by_channels };

  std::int64_t pairs;
  std::int64_t parts;
  std::int64_t columns;  // of a part, with columns of zeros
  std::int64_t lanes;
  Order order;

  std::int64_t images() const { return 2 * pairs; }
  PixelStrides strides(const OperandBand& band) const;
  std::int64_t channel_stride(const OperandBand& band) const;
  // A multiple of a vector, because whole vectors are written.
  std::int64_t part_stride(const OperandBand& band) const;
};

// Copies a band of whole sets in pairs of images. Uses the rows of `band`, and its first column.
void pack_pairs(const ProductLoops& loops, const Operand& operand, const std::byte* data, const OperandBand& band,
                const ImagePairs& pairs, const InputNorm* norm, float* packed);

}  // namespace lockstep::cpu
