// The register-tile loop of product_loops.hpp. tile_rows[v] is how many rows a tile of v vectors has, so that its sums
// fill the registers. Included in a namespace per instruction set, after words.inl.

// Steps between prefetches: about 400 cycles of products.
constexpr std::int64_t steps_at_once = lanes == 16 ? 16 : 64;

constexpr int max_vectors = sizeof tile_rows / sizeof tile_rows[0] - 1;

// One step of all sums of a tile: one word of each row, broadcast, times the vectors on the right.
template <typename Word, int rows, int vectors>
inline void add_step(Floats (&sums)[rows][vectors], const float* const (&left)[rows], std::int64_t at,
                     const float* right, std::int64_t right_stride) {
  Floats factors[vectors];
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) factors[v] = load(right + v * right_stride);
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row) {
    const float value = left[row][at];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[row][v] = Word::add_product(sums[row][v], value, factors[v]);
  }
}

// Loops over rows and vectors are fully unrolled. Otherwise the sums would not stay in registers.
template <typename Word, int rows, int vectors>
void multiply_tile(const Products& call, std::int64_t first) {
  Floats sums[rows][vectors];
  const float* left[rows];
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row) {
    left[row] = call.left + call.left_offsets[first + row];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[row][v] = zero;
  }
  const bool is_last = first + rows >= call.rows;
  const std::int64_t ahead = is_last ? 0 : call.left_offsets[first + rows] - call.left_offsets[first];
  const std::int64_t step = call.left_step;
  const std::int64_t right_stride = call.right_stride;
  std::int64_t until_fetch = 0;  // in steps
  for (const ProductSegment *segment = call.segments, *end = segment + call.segment_count; segment != end; ++segment) {
    const float* right = call.right + segment->right;
    std::int64_t at = segment->left;
#pragma GCC unroll 16
    for (int row = 0; row < rows; row += 64 / (4 * lanes)) __builtin_prefetch(left[row] + at + ahead);
    for (std::int64_t left_over = segment->steps; left_over > 0; left_over -= steps_at_once) {
      if (until_fetch <= 0) {
        if (call.prefetch != nullptr) fetch(call.prefetch->next());
        until_fetch = steps_at_once;
      }
      const std::int64_t steps = left_over < steps_at_once ? left_over : steps_at_once;
      until_fetch -= steps;
#pragma GCC unroll 4
      for (std::int64_t j = steps; j > 0; --j, at += step, right += lanes) {
        add_step<Word>(sums, left, at, right, right_stride);
      }
    }
  }
  const bool adds = call.accumulate == Accumulate::add;
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row) {
    float* out = call.out + call.out_offsets[first + row];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      float* place = out + v * call.out_stride;
      store(adds ? load(place) + sums[row][v] : sums[row][v], place);
    }
  }
}

template <typename Word, int vectors, int rows>
void multiply_tiles(const Products& call, std::int64_t first, std::int64_t tiles, std::int64_t rows_each) {
  if (rows_each == rows) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) multiply_tile<Word, rows, vectors>(call, first + tile * rows);
  } else if constexpr (rows > 1) {
    multiply_tiles<Word, vectors, rows - 1>(call, first, tiles, rows_each);
  }
}

// Tiles of nearly equal size. In a small tile at the end, each addition would wait for the one before.
template <typename Word, int vectors>
void multiply(const Products& call) {
  constexpr int most = tile_rows[vectors];
  const std::int64_t tiles = (call.rows + most - 1) / most;
  if (tiles == 0) return;
  const std::int64_t rows_each = call.rows / tiles;
  const std::int64_t larger = call.rows % tiles;
  multiply_tiles<Word, vectors, most>(call, 0, larger, rows_each + 1);
  multiply_tiles<Word, vectors, most>(call, larger * (rows_each + 1), tiles - larger, rows_each);
}

template <typename Word, int vectors>
void products_of(const Products& call) {
  if (call.vectors == vectors) {
    multiply<Word, vectors>(call);
  } else if constexpr (vectors > 1) {
    products_of<Word, vectors - 1>(call);
  }
}

void products(const Products& call) { products_of<OneFloat, max_vectors>(call); }
