// Matrix products of Winograd at each point, and the tables of all Winograd functions. A micro-kernel keeps
// product_rows[w] tiles (backward-weight: gradient_rows[w] input channels) x w channel blocks of sums in registers.
// Layouts: winograd_loops.hpp. Included in a namespace per instruction set, after winograd_tiles.inl.

namespace {

// A hardware vector. A block takes one or two. The compiler would keep wider vectors in memory.
using Register = float __attribute__((vector_size(register_lanes * 4)));
constexpr int registers_per_block = static_cast<int>(lanes / register_lanes);

// The sums of a micro-kernel: `rows` x `width` blocks in registers.
template <int rows, int width>
struct Sums {
  static constexpr int parts = width * registers_per_block;

  // Rows are `row_stride` apart, the blocks of a row `block_stride`.
  Sums(Accumulate accumulate, const float* from, std::int64_t row_stride, std::int64_t block_stride) {
    const bool fresh = accumulate == Accumulate::overwrite;
#pragma GCC unroll 32
    for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 8
      for (int part = 0; part < parts; ++part) {
        value[row][part] = fresh ? Register{} : load_raw<Register>(from + row * row_stride + place(part, block_stride));
      }
    }
  }
  // Adds factors[row * stride] times a row of `width` blocks to every row of sums. Operands are words.
  template <typename Word>
  void add(const float* factors, std::int64_t stride, const float* blocks) {
    Register vector[parts];
#pragma GCC unroll 8
    for (int part = 0; part < parts; ++part) vector[part] = load_raw<Register>(blocks + part * register_lanes);
#pragma GCC unroll 32
    for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 8
      for (int part = 0; part < parts; ++part) {
        value[row][part] = Word::add_product(value[row][part], factors[row * stride], vector[part]);
      }
    }
  }
  void put(float* to, std::int64_t row_stride, std::int64_t block_stride) const {
#pragma GCC unroll 32
    for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 8
      for (int part = 0; part < parts; ++part) {
        store_raw(value[row][part], to + row * row_stride + place(part, block_stride));
      }
    }
  }
  static std::int64_t place(int part, std::int64_t block_stride) {
    return part / registers_per_block * block_stride + part % registers_per_block * register_lanes;
  }

  Register value[rows][parts];
};

// `rows` tiles x one panel, summed over all input channels.
template <typename Word, int rows, int width>
[[gnu::noinline]] void multiply_rows(const float* v, std::int64_t v_block_stride, std::int64_t in_blocks,
                                     const float* u, float* m, std::int64_t m_block_stride, Accumulate accumulate) {
  constexpr std::int64_t words = lanes / Word::values;
  Sums<rows, width> sums(accumulate, m, lanes, m_block_stride);
  do {
#pragma GCC unroll 4
    for (std::int64_t word = 0; word < words; ++word, u += width * lanes) {
      sums.template add<Word>(v + word, words, u);
    }
    v += v_block_stride;
  } while (--in_blocks > 0);
  sums.put(m, lanes, m_block_stride);
}

// The tiles [tile, end). The remainder is computed with half as many rows at a time.
template <typename Word, int rows, int width>
inline void multiply_panel(const float* v, const float* u, float* m, const TileProduct& product, std::int64_t tile,
                           std::int64_t end) {
  for (; tile + rows <= end; tile += rows) {
    if (product.prefetch != nullptr) fetch(product.prefetch->next());
    multiply_rows<Word, rows, width>(v + tile * (lanes / Word::values), product.v_block_stride, product.in_blocks, u,
                                     m + tile * lanes, product.m_block_stride, product.accumulate);
  }
  if constexpr (rows > 1) multiply_panel<Word, rows / 2, width>(v, u, m, product, tile, end);
}

template <typename Word>
void multiply(const TileProduct& product) {
  for (std::int64_t point = 0; point < product.points; ++point) {
    const TileRange tiles = product.tiles.needing(point);
    const std::int64_t end = tiles.first + tiles.count;
    const float* v = product.v + point * product.v_point_stride;
    const float* u = product.u + point * product.u_point_stride;
    float* m = product.m + point * product.m_point_stride;
    for (std::int64_t block = 0; block < product.out_blocks;) {
      const std::int64_t width = panel_width(product.out_blocks - block, product_panel);
      if (width == 2) {
        multiply_panel<Word, product_rows[2], 2>(v, u, m, product, tiles.first, end);
      } else {
        multiply_panel<Word, product_rows[1], 1>(v, u, m, product, tiles.first, end);
      }
      block += width;
      u += width * lanes * product.in_blocks * (lanes / Word::values);
      m += width * product.m_block_stride;
    }
  }
}

// Tiles or pairs of tiles that a gradient product sums over. A pair may have a tile that does not need the point, whose
// Y is zero there.
struct Terms {
  std::int64_t first, count;
};
template <typename Word>
inline Terms terms_of(const TileRange& tiles) {
  const std::int64_t first = tiles.first / Word::values;
  return {first, (tiles.first + tiles.count + Word::values - 1) / Word::values - first};
}

// `rows` input channels x one panel, summed over `terms`.
template <typename Word, int rows, int width>
[[gnu::noinline]] void multiply_gradient_rows(const float* v, const float* y, std::int64_t terms, float* d,
                                              Accumulate accumulate) {
  Sums<rows, width> sums(accumulate, d, width * lanes, lanes);
  do {
    sums.template add<Word>(v, 1, y);
    v += lanes;
    y += width * lanes;
  } while (--terms > 0);
  sums.put(d, width * lanes, lanes);
}

template <typename Word, int width>
inline void multiply_gradient_panel(const float* v, const float* y, float* d, const GradientProduct& product,
                                    const Terms& terms) {
  constexpr int rows = gradient_rows[width];
  v += terms.first * lanes;
  y += terms.first * width * lanes;
  for (std::int64_t block = 0; block < product.in_blocks; ++block, v += product.v_block_stride) {
    for (std::int64_t row = 0; row < lanes; row += rows, d += rows * width * lanes) {
      if (product.prefetch != nullptr) fetch(product.prefetch->next());
      multiply_gradient_rows<Word, rows, width>(v + row, y, terms.count, d, product.accumulate);
    }
  }
}

template <typename Word>
void multiply_gradient(const GradientProduct& product) {
  for (std::int64_t point = 0; point < product.points; ++point) {
    const float* v = product.v + point * product.v_point_stride;
    const float* y = product.y + point * product.y_point_stride;
    float* d = product.d + point * product.d_point_stride;
    const TileRange tiles = product.tiles.needing(point);
    if (tiles.count == 0) {
      if (product.accumulate == Accumulate::overwrite) {
        __builtin_memset(d, 0, static_cast<std::size_t>(product.out_blocks * product.d_block_stride) * sizeof *d);
      }
      continue;
    }
    const Terms terms = terms_of<Word>(tiles);
    for (std::int64_t block = 0; block < product.out_blocks;) {
      const std::int64_t width = panel_width(product.out_blocks - block, gradient_panel);
      if (width == 3) {
        multiply_gradient_panel<Word, 3>(v, y, d, product, terms);
      } else if (width == 2) {
        multiply_gradient_panel<Word, 2>(v, y, d, product, terms);
      } else {
        multiply_gradient_panel<Word, 1>(v, y, d, product, terms);
      }
      block += width;
      y += width * product.y_block_stride;
      d += width * product.d_block_stride;
    }
  }
}

template <typename Form, typename Storage, typename Word, int points = Form::Window::to * Form::Window::to>
constexpr WinogradLoops winograd_table = {
    .lanes = lanes,
    .points = points,
    .word_values = Word::values,
    .tile_size = Form::Output::to,
    .product_rows = product_rows,
    .gradient_rows = gradient_rows,
    .unneeded_lines = Form::unneeded_lines,
    .transform_windows = transform_windows<typename Form::Window, Storage, AsFactors<Word>>,
    .transform_window_terms = transform_windows<typename Form::Window, Storage, AsTerms<Word, points>>,
    .transform_gradient = transform_gradient<typename Form::Gradient, Storage, AsTerms<Word, points>>,
    .transform_outputs = transform_outputs<Form, Storage>,
    .transform_weights = transform_weights<typename Form::Weight, AsTerms<Word, points>>,
    .finish_gradient = finish_gradient<Form>,
    .multiply = multiply<Word>,
    .multiply_gradient = multiply_gradient<Word>,
};

template <typename Storage, typename Word>
constexpr WinogradForms forms = {winograd_table<Stride1, Storage, Word>, winograd_table<Stride2, Storage, Word>,
                                 winograd_table<Stride2Backward, Storage, Word>};

using FastWord = std::conditional_t<multiplies_pairs, PairOfBf16, OneFloat>;

constexpr WinogradTables tables = {{forms<F32, OneFloat>, forms<Bf16, OneFloat>}, forms<Bf16, FastWord>};

}  // namespace
