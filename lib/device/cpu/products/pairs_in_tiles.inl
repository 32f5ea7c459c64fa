// Products of pairs of bf16 by AMX, whose registers are tiles of 16 rows of 64 bytes. An instruction adds the product of
// two of them to a third:
//
//    sums, 16 rows x B floats  +=  left, 16 rows x 16 pairs  x  right, 16 pairs x B channels
//
// Terms pass 16 at a time, of as many segments as it takes. Of the left operand, whose rows lie anywhere, they are
// copied into a tile's form; of the right one only where they do not follow each other. The order of rounding is the
// instruction's own, and denormal numbers count as zeros (Intel 64 and IA-32 Architectures Software Developer's Manual,
// TDPBF16PS). Included inside a namespace per instruction set, after products.inl.

constexpr std::int64_t tile_side = 16;  // rows, and words in a row
constexpr std::int64_t tile_words = tile_side * tile_side;
static_assert(lanes == tile_side);

constexpr int pair_tile_rows[] = {0, tile_side, tile_side, tile_side, tile_side};
static_assert(sizeof pair_tile_rows == sizeof tile_rows);

// What LDTILECFG reads. All eight registers are whole.
struct TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes whole_tiles;

// The compiler's own functions for tiles do not tell it which memory they read and write.
inline void begin_tiles() { asm volatile("ldtilecfg %0" ::"m"(whole_tiles)); }
inline void end_tiles() { asm volatile("tilerelease"); }
template <int tile>
inline void load_tile(const float* first) {
  asm volatile("tileloadd (%0, %1, 1), %%tmm%c2" ::"r"(first), "r"(tile_side * 4), "i"(tile) : "memory");
}
template <int tile>
inline void store_tile(float* first) {
  asm volatile("tilestored %%tmm%c2, (%0, %1, 1)" ::"r"(first), "r"(tile_side * 4), "i"(tile) : "memory");
}
template <int tile>
inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}
template <int sums, int left, int right>
inline void add_tile_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
}

// Words of a row of the left operand that follow each other.
struct TermRun {
  std::int64_t left;  // from a row's offset to where the row's word 0 would be
  std::uint16_t words;  // a bit each
};

// Terms that pass together.
struct TermTile {
  std::int64_t count;
  std::int64_t left[tile_side];  // from a row's offset
  TermRun runs[tile_side];       // the same
  std::int64_t run_count;
  const float* right;  // tiles, one for each vector
  std::int64_t right_stride;
};

// Cuts the terms of all segments into tiles.
class TermTiles {
 public:
  explicit TermTiles(const Products& call) : call_(call), segment_(call.segments) {}

  bool is_at_end() const { return segment_ == call_.segments + call_.segment_count; }

  // The next. Its right operand is copied to `copies`, as many tiles as there are vectors, if it is not one already.
  void next(TermTile& tile, float* copies) {
    const float* right[tile_side];
    bool right_follows = true;
    tile.count = tile.run_count = 0;
    for (; tile.count < tile_side && !is_at_end(); step()) {
      const std::int64_t at = tile.count++;
      tile.left[at] = segment_->left + step_ * call_.left_step;
      right[at] = call_.right + segment_->right + step_ * lanes;
      right_follows = right_follows && (at == 0 || right[at] == right[at - 1] + lanes);
      if (at == 0 || tile.left[at] != tile.left[at - 1] + 1) tile.runs[tile.run_count++] = {tile.left[at] - at, 0};
      tile.runs[tile.run_count - 1].words |= static_cast<std::uint16_t>(1U << at);
    }
    const bool is_tile = right_follows && tile.count == tile_side;
    tile.right = is_tile ? right[0] : copies;
    tile.right_stride = is_tile ? call_.right_stride : tile_words;
    for (std::int64_t v = 0; !is_tile && v < call_.vectors; ++v) {
      for (std::int64_t term = 0; term < tile_side; ++term, copies += lanes) {
        store(term < tile.count ? load(right[term] + v * call_.right_stride) : zero, copies);
      }
    }
  }

 private:
  void step() {
    if (++step_ == segment_->steps) {
      ++segment_;
      step_ = 0;
    }
  }

  const Products& call_;
  const ProductSegment* segment_;
  std::int64_t step_ = 0;
};

// Words of a row that are marked; of the others no memory is read.
inline Floats load_some(Floats others, std::uint16_t words, const float* first) {
  return _mm512_mask_loadu_ps(reinterpret_cast<__m512>(others), words, first);
}

// Rows that share tiles of sums.
struct TileRows {
  std::int64_t first, count;
};

// Where terms follow each other in a row, any rows do; elsewhere such as follow each other under every term.
inline TileRows tile_rows_from(const Products& call, std::int64_t first) {
  const std::int64_t most = call.rows - first < tile_side ? call.rows - first : tile_side;
  if (call.left_step == 1) return {first, most};
  std::int64_t count = 1;
  while (count < most && call.left_offsets[first + count] == call.left_offsets[first] + count) ++count;
  return {first, count};
}

// left[row][term], terms that do not exist being zero. Rows that do not exist are left as they are.
inline void copy_left(const Products& call, const TileRows& rows, const TermTile& terms, float* left) {
  if (call.left_step != 1) {
    Floats by_terms[tile_side];
    const auto existing = static_cast<std::uint16_t>((1U << rows.count) - 1);
    const float* const from = call.left + call.left_offsets[rows.first];
#pragma GCC unroll 16
    for (std::int64_t term = 0; term < tile_side; ++term) {
      by_terms[term] = term < terms.count ? load_some(zero, existing, from + terms.left[term]) : zero;
    }
    transpose(by_terms);
#pragma GCC unroll 16
    for (std::int64_t row = 0; row < tile_side; ++row) store(by_terms[row], left + row * tile_side);
    return;
  }
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float* const from = call.left + call.left_offsets[rows.first + row];
    Floats words = zero;
    for (std::int64_t run = 0; run < terms.run_count; ++run) {
      words = load_some(words, terms.runs[run].words, from + terms.runs[run].left);
    }
    store(words, left + row * tile_side);
  }
}

// body(0), body(1), ... as constants, of which the numbers of tiles are made.
template <int count, typename Body>
inline void for_each_constant(Body body) {
  [&]<int... number>(std::integer_sequence<int, number...>) {
    (body(std::integral_constant<int, number>{}), ...);
  }(std::make_integer_sequence<int, count>{});
}

// The sums of `row_tiles` times 16 rows. Four tiles are sums, two are left and two right operands.
template <int row_tiles, int vectors>
void multiply_tiles(const Products& call, const TileRows* rows, const TermTile* terms, std::int64_t term_tiles,
                    Accumulate accumulate) {
  static_assert(row_tiles * vectors <= 4);
  alignas(64) float left[row_tiles][tile_words];
  alignas(64) float sums[tile_words];
  for_each_constant<row_tiles * vectors>([](auto tile) { clear_tile<tile>(); });
  for (const TermTile *term = terms, *end = terms + term_tiles; term != end; ++term) {
    for (int r = 0; r < row_tiles; ++r) {
      if (call.prefetch != nullptr) fetch(call.prefetch->next());
      copy_left(call, rows[r], *term, left[r]);
    }
    for_each_constant<vectors>([&](auto v) {
      load_tile<6 + v % 2>(term->right + v * term->right_stride);
      for_each_constant<row_tiles>([&](auto r) {
        if (v == 0 || row_tiles > 2) load_tile<4 + r % 2>(left[r]);
        add_tile_product<r * vectors + v, 4 + r % 2, 6 + v % 2>();
      });
    });
  }
  for_each_constant<row_tiles>([&](auto r) {
    for_each_constant<vectors>([&](auto v) {
      store_tile<r * vectors + v>(sums);
      for (std::int64_t row = 0; row < rows[r].count; ++row) {
        float* const out = call.out + call.out_offsets[rows[r].first + row] + v * call.out_stride;
        const Floats sum = load(sums + row * tile_side);
        store(accumulate == Accumulate::add ? load(out) + sum : sum, out);
      }
    });
  });
}

// So many tiles of rows as are there.
template <int vectors, int row_tiles>
void multiply_as_many_tiles(const Products& call, const TileRows* rows, std::int64_t count, const TermTile* terms,
                            std::int64_t term_tiles, Accumulate accumulate) {
  if (count == row_tiles) {
    multiply_tiles<row_tiles, vectors>(call, rows, terms, term_tiles, accumulate);
  } else if constexpr (row_tiles > 1) {
    multiply_as_many_tiles<vectors, row_tiles - 1>(call, rows, count, terms, term_tiles, accumulate);
  }
}

template <int vectors>
void multiply_in_tiles(const Products& call) {
  constexpr int row_tiles = 4 / vectors;
  constexpr std::int64_t term_tiles_at_once = 32 / vectors;
  alignas(64) float copies[term_tiles_at_once * vectors * tile_words];
  TermTile terms[term_tiles_at_once];
  TermTiles stream(call);
  Accumulate accumulate = call.accumulate;
  do {
    std::int64_t term_tiles = 0;
    for (; term_tiles < term_tiles_at_once && !stream.is_at_end(); ++term_tiles) {
      stream.next(terms[term_tiles], copies + term_tiles * vectors * tile_words);
    }
    for (std::int64_t row = 0; row < call.rows;) {
      TileRows rows[row_tiles];
      std::int64_t count = 0;
      for (; count < row_tiles && row < call.rows; ++count) {
        rows[count] = tile_rows_from(call, row);
        row += rows[count].count;
      }
      multiply_as_many_tiles<vectors, row_tiles>(call, rows, count, terms, term_tiles, accumulate);
    }
    accumulate = Accumulate::add;
  } while (!stream.is_at_end());
}

template <int vectors>
void pair_products_of(const Products& call) {
  if (call.vectors == vectors) {
    multiply_in_tiles<vectors>(call);
  } else if constexpr (vectors > 1) {
    pair_products_of<vectors - 1>(call);
  }
}

void pair_products(const Products& call) {
  begin_tiles();
  pair_products_of<4>(call);
  end_tiles();
}
