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
inline void load_tile(const float* first, std::int64_t row_words = tile_side) {
  asm volatile("tileloadd (%0, %1, 1), %%tmm%c2" ::"r"(first), "r"(row_words * 4), "i"(tile) : "memory");
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

// Rows of the operands that share a tile.
struct TileRows {
  std::int64_t first, count;
  std::int64_t spacing;         // words between neighbours of the tile, in the left operand; 0: of no one size
  std::int64_t at[tile_side];  // which of the tile's rows each is
};

constexpr std::int64_t most_spacing = 64;
constexpr std::int64_t pairs_read_beyond = tile_side * most_spacing;

// Rows at equal distances, which a register is loaded with from where they are; those between them and after them belong
// to no one, such as padding at the ends of a picture's rows. Where these would be many, any rows do, which must be
// copied then.
inline TileRows pixels_from(const Products& call, std::int64_t first) {
  const std::int64_t* const offsets = call.left_offsets + first;
  const std::int64_t most = call.rows - first < tile_side ? call.rows - first : tile_side;
  TileRows rows{first, 0, most > 1 ? offsets[1] - offsets[0] : tile_side, {}};
  const bool is_near = rows.spacing > 0 && rows.spacing <= most_spacing;
  for (std::int64_t at = 0; is_near && at < tile_side && rows.count < most; ++at) {
    if (offsets[rows.count] == offsets[0] + at * rows.spacing) rows.at[rows.count++] = at;
  }
  constexpr std::int64_t least = 11;
  if (rows.count >= (least < most ? least : most)) return rows;
  rows = {first, most, 0, {}};
  for (std::int64_t row = 0; row < most; ++row) rows.at[row] = row;
  return rows;
}

// Rows whose words follow each other under every term.
inline TileRows channels_from(const Products& call, std::int64_t first) {
  const std::int64_t most = call.rows - first < tile_side ? call.rows - first : tile_side;
  TileRows rows{first, 1, 0, {}};
  while (rows.count < most && call.left_offsets[first + rows.count] == call.left_offsets[first] + rows.count) {
    rows.at[rows.count] = rows.count;
    ++rows.count;
  }
  return rows;
}

// left[row][term], terms that do not exist being zero. Rows that do not exist are left as they are.
inline void copy_channels(const Products& call, const TileRows& rows, const TermTile& terms, float* left) {
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
}

template <int runs>
inline void copy_runs(const Products& call, const TileRows& rows, const TermTile& terms, float* left) {
  const float* from[runs];
  std::uint16_t words[runs];
  for (int run = 0; run < runs; ++run) {
    from[run] = call.left + terms.runs[run].left;
    words[run] = terms.runs[run].words;
  }
  const std::int64_t* const offsets = call.left_offsets + rows.first;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    Floats copied = zero;
    for (int run = 0; run < runs; ++run) copied = load_some(copied, words[run], from[run] + offsets[row]);
    store(copied, left + rows.at[row] * tile_side);
  }
}

// Likewise.
inline void copy_pixels(const Products& call, const TileRows& rows, const TermTile& terms, float* left) {
  if (terms.run_count == 1) return copy_runs<1>(call, rows, terms, left);
  if (terms.run_count == 2) return copy_runs<2>(call, rows, terms, left);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float* const from = call.left + call.left_offsets[rows.first + row];
    Floats words = zero;
    for (std::int64_t run = 0; run < terms.run_count; ++run) {
      words = load_some(words, terms.runs[run].words, from + terms.runs[run].left);
    }
    store(words, left + rows.at[row] * tile_side);
  }
}

// body(0), body(1), ... as constants, of which the numbers of tiles are made.
template <int count, typename Body>
inline void for_each_constant(Body body) {
  [&]<int... number>(std::integer_sequence<int, number...>) {
    (body(std::integral_constant<int, number>{}), ...);
  }(std::make_integer_sequence<int, count>{});
}

// Sums over some tiles of terms, of all rows: `row_tiles` times 16 of them at once, with four tiles of sums in registers
// beside two left and two right operands. A tile that has just been written cannot be read from the core's buffers. So
// what is multiplied was copied two steps before, and sums are taken to their places while the next ones are computed.
template <int row_tiles, int vectors>
class TileProducts {
 public:
  TileProducts(const Products& call, Accumulate accumulate) : call_(call), accumulate_(accumulate) {}

  void run(const TermTile* terms, std::int64_t count) {
    Place copied;
    Place multiplied;
    for (std::int64_t step = 0; step < ahead && has_rows(copied); ++step) copy(copied, terms, count);
    while (multiplied.group < groups_) {
      if (has_rows(copied)) copy(copied, terms, count);
      multiply(multiplied, terms, count);
    }
    if (groups_ > 0) take_sums(groups_ - 1);
  }

 private:
  static_assert(row_tiles * vectors <= 4);
  static constexpr std::int64_t ahead = 2;

  // The next step.
  struct Place {
    std::int64_t group = 0;  // of rows
    std::int64_t term = 0;   // which tile of terms
    std::int64_t step = 0;

    void advance(std::int64_t terms) {
      ++step;
      if (++term == terms) {
        term = 0;
        ++group;
      }
    }
  };

  // A left operand in the form of a tile.
  struct Left {
    const float* first;
    std::int64_t row_words;
  };

  TileRows* rows_of(std::int64_t group) { return rows_[group % 4]; }

  bool has_rows(const Place& copied) const { return copied.term > 0 || next_row_ < call_.rows; }

  void copy(Place& place, const TermTile* terms, std::int64_t count) {
    TileRows* const rows = rows_of(place.group);
    if (place.term == 0) {
      for (int r = 0; r < row_tiles; ++r) {
        rows[r] = next_row_ < call_.rows ? rows_from(next_row_) : TileRows{};
        next_row_ += rows[r].count;
      }
      ++groups_;
    }
    for (int r = 0; r < row_tiles; ++r) {
      if (call_.prefetch != nullptr) fetch(call_.prefetch->next());
      left_[place.step % 4][r] = left_of(rows[r], terms[place.term], copies_[place.step % 4][r]);
    }
    place.advance(count);
  }

  TileRows rows_from(std::int64_t first) const {
    return call_.left_step == 1 ? pixels_from(call_, first) : channels_from(call_, first);
  }

  Left left_of(const TileRows& rows, const TermTile& terms, float* copy) const {
    if (rows.spacing != 0 && terms.run_count == 1 && terms.count == tile_side) {
      return {call_.left + call_.left_offsets[rows.first] + terms.left[0], rows.spacing};
    }
    if (rows.count > 0) {
      call_.left_step == 1 ? copy_pixels(call_, rows, terms, copy) : copy_channels(call_, rows, terms, copy);
    }
    return {copy, tile_side};
  }

  void multiply(Place& place, const TermTile* terms, std::int64_t count) {
    const TermTile& term = terms[place.term];
    if (place.term == 0) for_each_constant<row_tiles * vectors>([](auto tile) { clear_tile<tile>(); });
    const Left(&left)[row_tiles] = left_[place.step % 4];
    for_each_constant<vectors>([&](auto v) {
      load_tile<6 + v % 2>(term.right + v * term.right_stride);
      for_each_constant<row_tiles>([&](auto r) {
        if (v == 0 || row_tiles > 2) load_tile<4 + r % 2>(left[r].first, left[r].row_words);
        add_tile_product<r * vectors + v, 4 + r % 2, 6 + v % 2>();
      });
    });
    if (place.term + 1 == count) {
      for_each_constant<row_tiles * vectors>([&](auto tile) { store_tile<tile>(sums_[place.group % 2][tile]); });
      if (place.group > 0) take_sums(place.group - 1);
    }
    place.advance(count);
  }

  void take_sums(std::int64_t group) {
    accumulate_ == Accumulate::add ? take_sums<Accumulate::add>(group) : take_sums<Accumulate::overwrite>(group);
  }

  template <Accumulate accumulate>
  void take_sums(std::int64_t group) {
    const std::int64_t stride = call_.out_stride;
    for (int r = 0; r < row_tiles; ++r) {
      const TileRows& rows = rows_of(group)[r];
      const std::int64_t* const offsets = call_.out_offsets + rows.first;
      const float* const sums = sums_[group % 2][r * vectors];
      for (std::int64_t row = 0; row < rows.count; ++row) {
        float* const out = call_.out + offsets[row];
        const float* const sum = sums + rows.at[row] * tile_side;
#pragma GCC unroll 4
        for (std::int64_t v = 0; v < vectors; ++v) {
          const Floats value = load(sum + v * tile_words);
          store(accumulate == Accumulate::add ? load(out + v * stride) + value : value, out + v * stride);
        }
      }
    }
  }

  const Products& call_;
  Accumulate accumulate_;
  std::int64_t next_row_ = 0;
  std::int64_t groups_ = 0;  // whose rows are known
  TileRows rows_[4][row_tiles];
  Left left_[4][row_tiles];
  alignas(64) float copies_[4][row_tiles][tile_words];
  alignas(64) float sums_[2][row_tiles * vectors][tile_words];
};

template <int vectors>
void multiply_in_tiles(const Products& call) {
  constexpr std::int64_t most_terms = 32 / vectors;  // tiles of them
  alignas(64) float copies[most_terms * vectors * tile_words];
  TermTile terms[most_terms];
  TermTiles stream(call);
  Accumulate accumulate = call.accumulate;
  do {
    std::int64_t count = 0;
    do {
      stream.next(terms[count], copies + count * vectors * tile_words);
    } while (++count < most_terms && !stream.is_at_end());
    TileProducts<4 / vectors, vectors>(call, accumulate).run(terms, count);
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
