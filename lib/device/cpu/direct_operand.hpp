// How direct kernels read a feature map or images: in place where they can, else from a packed copy of a band, in fp32,
// with the padding around it and, for features, a norm applied.
#pragma once

#include "device/cpu/conv_kernel.hpp"
#include "device/cpu/direct_geometry.hpp"
#include "device/cpu/product_loops.hpp"

namespace lockstep::cpu {

struct OperandBand;

// Packed images have their channels next to each other: [image][row][column][channel].
struct Operand {
  Layout layout;
  DType dtype;
  std::int64_t channels, height, width;
  std::int64_t lanes;

  std::int64_t unit() const { return layout == Layout::images ? channels : lanes; }  // values of a pixel in a block
  std::int64_t blocks() const { return (channels + unit() - 1) / unit(); }
  std::int64_t channels_in(std::int64_t block) const {
    return block + 1 < blocks() ? unit() : channels - block * unit();
  }
  std::int64_t plane() const { return height * width * (layout == Layout::images ? 1 : lanes); }
  std::int64_t image() const { return plane() * (layout == Layout::images ? channels : blocks()); }

  bool is_readable() const { return layout == Layout::features && dtype == DType::f32; }
  PixelStrides strides() const { return dense_strides(blocks(), height, width, unit()); }  // of features, in place
  // Where a band begins, of an operand that is readable in place.
  const float* values_at(const std::byte* data, const OperandBand& band) const;
};

// The part of an operand that a band of results reads.
struct OperandBand {
  std::int64_t first_image, images;
  std::int64_t first_block, blocks;
  PlaneWindow window;

  PixelStrides packed_strides(std::int64_t unit) const {
    return spread_strides(blocks, window.rows, window.columns, unit);
  }
};

Operand input_operand(const ConvProblem& problem, std::int64_t lanes);   // x, dx
Operand output_operand(const ConvProblem& problem, std::int64_t lanes);  // y, dy

// What a band of results, `width` pixels wide, reads of `blocks` blocks.
OperandBand source_band(const Axis& axis, const Band& band, std::int64_t width, const Operand& operand,
                        std::int64_t first_block, std::int64_t blocks);
// Whether all that results read lies within the operand: no padding.
bool reads_inside(const Axis& axis, std::int64_t height, std::int64_t width, const Operand& operand);

// `norm` may be null; images have none.
void pack(const ProductLoops& loops, const Operand& operand, const std::byte* data, const OperandBand& band,
          const InputNorm* norm, float* packed);

}  // namespace lockstep::cpu
