// Algorithm: matmul.hpp.
#include "device/cpu/products/matmul.hpp"

#include <algorithm>
#include <cassert>

#include "device/cpu/instruction_sets/loops.hpp"
#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t piece_rows = 96;  // rows of c per item of work

}  // namespace

// Distances between rows and between columns, in floats. One of them is 1.
struct Matmul::Matrix {
  const float* values;
  std::int64_t row, column;
};

// c [m, n] (+)= a [m, k] * b [k, n]; c is stored by rows.
struct Matmul::Product {
  std::int64_t m, n, k;
  Matrix a, b;
  float* c;
  Accumulate accumulate;
};

// Scratch memory of a product, and how its work is split.
struct Matmul::Panels {
  float* values;               // packed b: [panel][k][B], zero after the last column of b
  float* last;                 // [m][B]: columns of c in the last, partial panel
  std::int64_t* left_offsets;  // in a, per row
  std::int64_t* out_offsets;   // in c, per row
  std::int64_t* last_offsets;  // in `last`, per row
  std::int64_t count;          // number of panels
  std::int64_t whole;          // number of panels with B columns
  std::int64_t groups;         // number of groups of whole panels; a tile computes one at a time
};

Matmul::Matmul(const CpuContext& context, InstructionSet set) : context_(context), loops_(loops_of(set).products) {
  assert(loops_.lanes == context.lanes);
}

void Matmul::linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) const {
  const std::int64_t in = x.shape()[1];
  run({x.shape()[0],
       y.shape()[1],
       in,
       {x.as<float>(), in, 1},
       {weight.as<float>(), 1, in},
       y.as<float>(),
       Accumulate::overwrite});
}

void Matmul::linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) const {
  const std::int64_t in = dx.shape()[1];
  const std::int64_t out = dy.shape()[1];
  run({dy.shape()[0],
       in,
       out,
       {dy.as<float>(), out, 1},
       {weight.as<float>(), in, 1},
       dx.as<float>(),
       Accumulate::overwrite});
}

void Matmul::linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight,
                                    Accumulate accumulate) const {
  const std::int64_t in = x.shape()[1];
  const std::int64_t out = dy.shape()[1];
  run({out, in, x.shape()[0], {dy.as<float>(), 1, out}, {x.as<float>(), in, 1}, dweight.as<float>(), accumulate});
}

void Matmul::run(const Product& product) const {
  const auto [m, n, k] = std::array{product.m, product.n, product.k};
  Panels panels{};
  panels.count = ceil_div(n, loops_.lanes);
  panels.whole = n / loops_.lanes;
  panels.groups = ceil_div(panels.whole, loops_.max_vectors);
  ScratchLayout plan;
  const std::int64_t values = plan.take_floats(panels.count * k * loops_.lanes);
  const std::int64_t last = plan.take_floats(m * loops_.lanes);
  const std::int64_t offsets = plan.take(3 * m * std::int64_t{sizeof(std::int64_t)});
  const Tensor scratch = scratch_tensor(context_.arena, plan.bytes());
  panels.values = floats_at(scratch.data(), values);
  panels.last = floats_at(scratch.data(), last);
  panels.left_offsets = reinterpret_cast<std::int64_t*>(scratch.data() + offsets);
  panels.out_offsets = panels.left_offsets + m;
  panels.last_offsets = panels.out_offsets + m;
  for (std::int64_t row = 0; row < m; ++row) {
    panels.left_offsets[row] = row * product.a.row;
    panels.out_offsets[row] = row * n;
    panels.last_offsets[row] = row * loops_.lanes;
  }
  pack(product, panels);
  const std::int64_t items = ceil_div(m, piece_rows) * (panels.groups + panels.count - panels.whole);
  parallel_for(context_.threads, items, [&](std::int64_t item) { multiply(product, panels, item); });
}

void Matmul::pack(const Product& product, const Panels& panels) const {
  const std::int64_t lanes = loops_.lanes;
  const Matrix& b = product.b;
  parallel_for(context_.threads, panels.count, [&](std::int64_t panel) {
    const std::int64_t columns = std::min(lanes, product.n - panel * lanes);
    const float* from = b.values + panel * lanes * b.column;
    float* to = panels.values + panel * product.k * lanes;
    std::int64_t row = 0;
    for (; b.row == 1 && row + lanes <= product.k; row += lanes, to += lanes * lanes) {
      loops_.transpose(from + row, b.column, columns, to);
    }
    for (; row < product.k; ++row, to += lanes) {
      const float* const values = from + row * b.row;
      for (std::int64_t column = 0; column < columns; ++column) to[column] = values[column * b.column];
      std::fill(to + columns, to + lanes, 0.0F);
    }
  });
}

// Computes some rows of c in a group of panels, or in the last, partial panel.
void Matmul::multiply(const Product& product, const Panels& panels, std::int64_t item) const {
  const std::int64_t pieces = ceil_div(product.m, piece_rows);
  const std::int64_t group = item / pieces;
  const std::int64_t first_row = cut(product.m, pieces, item % pieces);
  const std::int64_t last_row = cut(product.m, pieces, item % pieces + 1);
  const bool is_whole = group < panels.groups;
  const std::int64_t panel = is_whole ? cut(panels.whole, panels.groups, group) : panels.whole;
  const ProductSegment all{0, 0, product.k};
  Products call{};
  call.left = product.a.values;
  call.left_step = product.a.column;
  call.left_offsets = panels.left_offsets + first_row;
  call.right = panels.values + panel * product.k * loops_.lanes;
  call.right_stride = product.k * loops_.lanes;
  call.segments = &all;
  call.segment_count = 1;
  call.out = is_whole ? product.c + panel * loops_.lanes : panels.last;
  call.out_stride = loops_.lanes;
  call.out_offsets = (is_whole ? panels.out_offsets : panels.last_offsets) + first_row;
  call.rows = last_row - first_row;
  call.vectors = is_whole ? static_cast<int>(cut(panels.whole, panels.groups, group + 1) - panel) : 1;
  call.accumulate = is_whole ? product.accumulate : Accumulate::overwrite;
  loops_.products(call);
  if (is_whole) return;
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const float* const sums = panels.last + panels.last_offsets[row];
    float* const c = product.c + panels.out_offsets[row];
    for (std::int64_t column = panel * loops_.lanes; column < product.n; ++column) {
      const float sum = sums[column - panel * loops_.lanes];
      c[column] = product.accumulate == Accumulate::add ? c[column] + sum : sum;
    }
  }
}

}  // namespace lockstep::cpu
