// The geometry of direct convolutions: which source pixels a result reads, and how work is split, by shape alone.
//
// Rows and columns each have an Axis, and follow one rule. A phase is the set of result rows that meet the same kernel
// rows (taps). Row a of a phase reads, under each tap, source row source + a * advance + tap.offset. Forward has one
// phase. Backward-data has one per remainder of the row number by the stride.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/products/product_loops.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

// Consecutive rows of one image, or consecutive whole images. If images are packed in sets, those are sets.
struct Band {
  std::int64_t first_image, images;
  std::int64_t first_row, rows;

  bool is_as_large_as(const Band& other) const { return images == other.images && rows == other.rows; }
};

// The images of a band of sets of `set_images`, of `images` in all. The last set may lack some.
Band images_of(const Band& sets, std::int64_t set_images, std::int64_t images);

// Splits maps of rows x columns pixels into bands of about `pixels` pixels. The first row of a band is a multiple of
// `row_multiple`. Every band is as large as the first or the last one.
std::vector<Band> make_bands(std::int64_t images, std::int64_t rows, std::int64_t columns, std::int64_t pixels,
                             std::int64_t row_multiple);

// A row (or column) of the kernel, and its offset from the pixel's own source row.
struct Tap {
  std::int64_t kernel;
  std::int64_t offset;
};

// The rows (or columns) of the result that meet the same kernel rows: first, first + spacing, ... Row number a of them
// reads source rows source + a * advance + tap.offset.
struct AxisPhase {
  std::int64_t first;
  std::int64_t source;
  std::vector<Tap> taps;
};

struct Axis {
  std::int64_t spacing;  // between result rows of a phase
  std::int64_t advance;  // between their source rows
  std::int64_t step;     // between source rows that are read; the others are not packed
  std::vector<AxisPhase> phases;

  // Number of rows of a phase among the first `rows` rows.
  std::int64_t count(const AxisPhase& phase, std::int64_t rows) const {
    return rows <= phase.first ? 0 : (rows - phase.first + spacing - 1) / spacing;
  }
};

Axis forward_axis(const Conv1d& conv);        // of y, reading x
Axis packed_axis(Axis axis);                  // of a packed source, without the rows that nothing reads
Axis backward_data_axis(const Conv1d& conv);  // of dx, reading dy: one phase per remainder by the stride

struct Axes {
  Axis rows, columns;

  Steps step() const { return {rows.step, columns.step}; }
  bool skips_pixels() const { return rows.step != 1 || columns.step != 1; }
};

Axes forward_axes(const Conv2d& conv);
Axes packed_axes(const Axes& axes);
Axes backward_data_axes(const Conv2d& conv);

// The source rows that the first `rows` rows of a result read.
struct Span {
  std::int64_t first;  // may be negative
  std::int64_t count;
};
Span source_span(const Axis& axis, std::int64_t rows);

// The part of a height x width plane that is read: rows and columns from the first ones on, in steps.
PlaneWindow window_of(std::int64_t height, std::int64_t width, const Span& rows, const Span& columns,
                      const Steps& step);

// Distances between neighbors of an operand, in elements or words.
struct PixelStrides {
  std::int64_t image, block, row, column;

  std::int64_t pixel(std::int64_t at_row, std::int64_t at_column) const { return at_row * row + at_column * column; }
};

// [image][block][row][column][unit] with blocks an odd number of cache lines apart, so the same pixel of many blocks
// does not compete for a few sets of the L1 cache.
constexpr PixelStrides spread_strides(std::int64_t blocks, std::int64_t rows, std::int64_t columns, std::int64_t unit) {
  const std::int64_t block = (ceil_div(rows * columns * unit, 16) | 1) * 16;
  return {blocks * block, block, columns * unit, unit};
}

// [image][block][row][column][unit]
constexpr PixelStrides dense_strides(std::int64_t blocks, std::int64_t rows, std::int64_t columns, std::int64_t unit) {
  return {blocks * rows * columns * unit, rows * columns * unit, columns * unit, unit};
}

// Layout of stored weights (cpu_context.hpp): [out_blocks][in_blocks][kernel row][kernel column], each a matrix of
// `rows` x B.
struct WeightPlaces {
  WeightPlaces(const Conv2d& conv, int block_lanes);

  std::int64_t lanes;
  std::int64_t rows;  // input channels per block: B, or all channels of an image
  std::int64_t out_blocks, in_blocks;
  std::int64_t window;  // pixels of the kernel

  std::int64_t matrix() const { return rows * lanes; }
  std::int64_t out_stride() const { return in_blocks * window * matrix(); }
  std::int64_t count() const { return out_blocks * out_stride(); }
};

}  // namespace lockstep::cpu
