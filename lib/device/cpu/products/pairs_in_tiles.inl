// Products of bf16 pairs by AMX, whose registers are tiles of 16 rows x 64 bytes. One instruction computes
//
//    sums, 16 rows x B floats  +=  left, 16 rows x 16 pairs  x  right, 16 pairs x B channels
//
// A tile takes 16 terms, from one or more segments. Left rows that are not at equal distances are copied into a tile,
// right ones only if their terms are not contiguous. The instruction defines the rounding and flushes denormals (Intel
// SDM, TDPBF16PS). Included in a namespace per instruction set, after products.inl.

constexpr std::int64_t tile_side = 16;  // rows, and words per row
constexpr std::int64_t tile_words = tile_side * tile_side;
static_assert(lanes == tile_side);

constexpr int pair_tile_rows[] = {0, tile_side, tile_side, tile_side, tile_side};
static_assert(sizeof pair_tile_rows == sizeof tile_rows);

// Operand of LDTILECFG. All eight registers are whole tiles.
struct TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes whole_tiles;

// The compiler's intrinsics for tiles do not tell it which memory they access.
inline void begin_tiles() { asm volatile("ldtilecfg %0" ::"m"(whole_tiles)); }
inline void end_tiles() { asm volatile("tilerelease"); }
template <int tile>
inline void load_tile(const float* first, std::int64_t spacing) {
  asm volatile("tileloadd (%0, %1, 1), %%tmm%c2" ::"r"(first), "r"(spacing * 4), "i"(tile) : "memory");
}
template <int tile>
inline void store_tile(float* first, std::int64_t spacing) {
  asm volatile("tilestored %%tmm%c2, (%0, %1, 1)" ::"r"(first), "r"(spacing * 4), "i"(tile) : "memory");
}
template <int tile>
inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}
template <int sums, int left, int right>
inline void add_tile_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
}

// Contiguous terms of one segment in a tile: `count` terms from the tile's term `first` on.
struct TermRun {
  std::int64_t left;   // of the first term, from a row's offset
  const float* right;  // of the first term, for vector 0
  std::int64_t first, count;

  std::uint16_t words() const { return static_cast<std::uint16_t>(((1U << count) - 1) << first); }
};

struct TermTile {
  TermRun runs[tile_side];
  std::int64_t run_count;
  std::int64_t count;  // of terms
  const float* right;  // tiles, one per vector
  std::int64_t right_stride;

  bool is_one_run() const { return run_count == 1 && count == tile_side; }
};

// Cuts the terms of all segments into tiles.
class TermTiles {
 public:
  explicit TermTiles(const Products& call) : call_(call), segment_(call.segments) {}

  bool is_at_end() const { return segment_ == call_.segments + call_.segment_count; }

  // Produces the next tile. If its right operand is not contiguous, copies it to `copies`, one tile per vector.
  void next(TermTile& tile, float* copies) {
    tile.count = tile.run_count = 0;
    while (tile.count < tile_side && !is_at_end()) {
      const TermRun run = next_run(tile.count);
      if (run.count == 0) continue;
      tile.count += run.count;
      TermRun& last = tile.runs[tile.run_count > 0 ? tile.run_count - 1 : 0];
      if (tile.run_count > 0 && follows(run, last)) {
        last.count += run.count;
      } else {
        tile.runs[tile.run_count++] = run;
      }
    }
    const bool is_tile = right_follows(tile);
    tile.right = is_tile ? tile.runs[0].right : copies;
    tile.right_stride = is_tile ? call_.right_stride : tile_words;
    if (!is_tile) copy_right(tile, copies);
  }

 private:
  TermRun next_run(std::int64_t first) {
    const std::int64_t left_over = segment_->steps - step_;
    const std::int64_t count = left_over < tile_side - first ? left_over : tile_side - first;
    const TermRun run{segment_->left + step_ * call_.left_step, call_.right + segment_->right + step_ * lanes, first,
                      count};
    step_ += count;
    if (step_ == segment_->steps) {
      ++segment_;
      step_ = 0;
    }
    return run;
  }

  bool follows(const TermRun& run, const TermRun& last) const {
    return run.left == last.left + last.count * call_.left_step && run.right == last.right + last.count * lanes;
  }

  // Whether the right operand is a tile in place.
  static bool right_follows(const TermTile& tile) {
    for (std::int64_t i = 0; i < tile.run_count; ++i) {
      if (tile.runs[i].right != tile.runs[0].right + tile.runs[i].first * lanes) return false;
    }
    return tile.count == tile_side;
  }

  void copy_right(const TermTile& tile, float* copies) const {
    for (std::int64_t v = 0; v < call_.vectors; ++v, copies += tile_words) {
      for (std::int64_t i = 0; i < tile.run_count; ++i) {
        const TermRun& run = tile.runs[i];
        for (std::int64_t term = 0; term < run.count; ++term) {
          store(load(run.right + v * call_.right_stride + term * lanes), copies + (run.first + term) * lanes);
        }
      }
      for (std::int64_t term = tile.count; term < tile_side; ++term) store(zero, copies + term * lanes);
    }
  }

  const Products& call_;
  const ProductSegment* segment_;
  std::int64_t step_ = 0;
};

// Loads the marked words of a row and takes the others from `others`, without reading their memory.
inline Floats load_some(Floats others, std::uint16_t words, const float* first) {
  return _mm512_mask_loadu_ps(reinterpret_cast<__m512>(others), words, first);
}

struct TileRows {
  std::int64_t first = 0, count = 0;
  std::int64_t spacing = 0;         // words between the tile's rows in the left operand; 0: they must be copied
  std::int64_t out_spacing = 0;     // likewise in the result; 0: rows are not a whole tile there
  std::uint8_t at[tile_side] = {};  // row of the tile, for each of them
};

inline TileRows copied_rows(std::int64_t first, std::int64_t count) {
  TileRows rows{first, count};
  for (std::int64_t row = 0; row < tile_side; ++row) rows.at[row] = static_cast<std::uint8_t>(row);
  return rows;
}

// Rows at equal distances, which a register loads in place. Rows between them are unused, such as padding at the ends
// of image rows. If the load would pass the last row, or few of its rows exist, takes any rows, which must be copied.
inline TileRows pixels_from(const Products& call, std::int64_t first) {
  const std::int64_t* const offsets = call.left_offsets + first;
  const std::int64_t left_over = call.rows - first;
  const std::int64_t most = left_over < tile_side ? left_over : tile_side;
  TileRows rows{first, 0, most > 1 ? offsets[1] - offsets[0] : 0};
  for (std::int64_t at = 0; rows.spacing > 0 && at < tile_side && rows.count < most; ++at) {
    if (offsets[rows.count] == offsets[0] + at * rows.spacing) rows.at[rows.count++] = static_cast<std::uint8_t>(at);
  }
  if (rows.count == tile_side) return rows;
  constexpr std::int64_t least = 11;
  const std::int64_t end = offsets[0] + (tile_side - 1) * rows.spacing;
  const bool reads_rows = rows.count >= least && offsets[rows.count < left_over ? rows.count : rows.count - 1] >= end;
  return reads_rows ? rows : copied_rows(first, most);
}

// Rows whose words are contiguous under every term.
inline TileRows channels_from(const Products& call, std::int64_t first) {
  const std::int64_t most = call.rows - first < tile_side ? call.rows - first : tile_side;
  std::int64_t count = 1;
  while (count < most && call.left_offsets[first + count] == call.left_offsets[first] + count) ++count;
  return copied_rows(first, count);
}

inline std::int64_t out_spacing_of(const Products& call, const TileRows& rows) {
  if (rows.count < tile_side) return 0;
  const std::int64_t* const offsets = call.out_offsets + rows.first;
  const std::int64_t spacing = offsets[1] - offsets[0];
  for (std::int64_t row = 2; row < tile_side; ++row) {
    if (offsets[row] != offsets[0] + row * spacing) return 0;
  }
  return spacing;
}

inline TileRows rows_from(const Products& call, std::int64_t first) {
  TileRows rows = call.left_step == 1 ? pixels_from(call, first) : channels_from(call, first);
  rows.out_spacing = out_spacing_of(call, rows);
  return rows;
}

// left[row][term]. Missing terms are zero, missing rows unchanged.
inline void copy_channels(const Products& call, const TileRows& rows, const TermTile& terms, float* left) {
  Floats by_terms[tile_side] = {};
  const auto existing = static_cast<std::uint16_t>((1U << rows.count) - 1);
  for (std::int64_t i = 0; i < terms.run_count; ++i) {
    const TermRun& run = terms.runs[i];
    const float* from = call.left + call.left_offsets[rows.first] + run.left;
    for (std::int64_t term = 0; term < run.count; ++term, from += call.left_step) {
      by_terms[run.first + term] = load_some(zero, existing, from);
    }
  }
  transpose(by_terms);
  for (std::int64_t row = 0; row < tile_side; ++row) store(by_terms[row], left + row * tile_side);
}

// The same for pixels. `constant_runs`: the usual number of runs, as a constant.
template <int constant_runs>
inline void copy_pixels(const Products& call, const TileRows& rows, const TermTile& terms, float* left) {
  const std::int64_t runs = constant_runs > 0 ? constant_runs : terms.run_count;
  const float* from[tile_side];
  std::uint16_t words[tile_side];
  for (std::int64_t run = 0; run < runs; ++run) {
    from[run] = call.left + terms.runs[run].left - terms.runs[run].first;
    words[run] = terms.runs[run].words();
  }
  const std::int64_t* const offsets = call.left_offsets + rows.first;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    Floats copied = zero;
    for (std::int64_t run = 0; run < runs; ++run) copied = load_some(copied, words[run], from[run] + offsets[row]);
    store(copied, left + rows.at[row] * tile_side);
  }
}

inline void copy_left(const Products& call, const TileRows& rows, const TermTile& terms, float* left) {
  if (call.left_step != 1) return copy_channels(call, rows, terms, left);
  if (terms.run_count == 1) return copy_pixels<1>(call, rows, terms, left);
  if (terms.run_count == 2) return copy_pixels<2>(call, rows, terms, left);
  copy_pixels<0>(call, rows, terms, left);
}

// Calls body with the constants 0, 1, ..., which tile instructions need as immediates.
template <int count, typename Body>
inline void for_each_constant(Body body) {
  [&]<int... number>(std::integer_sequence<int, number...>) { (body(std::integral_constant<int, number>{}), ...); }
  (std::make_integer_sequence<int, count>{});
}

// Sums of some groups of 16 * `row_tiles` rows over some tiles of terms. Four registers hold sums, two left and two
// right operands.
template <int row_tiles, int vectors>
class TileProducts {
 public:
  using Rows = TileRows[row_tiles];

  TileProducts(const Products& call, const Rows* rows, std::size_t groups, Accumulate accumulate)
      : call_(call), rows_(rows), groups_(groups), accumulate_(accumulate) {}

  void run(const TermTile* terms, std::int64_t count) {
    bool in_place = true;
    for (std::int64_t term = 0; term < count; ++term) in_place &= terms[term].is_one_run();
    for (std::size_t group = 0; group < groups_; ++group) {
      for (const TileRows& rows : rows_[group]) in_place &= rows.count == 0 || rows.spacing != 0;
    }
    in_place ? run_in_place(terms, count) : run_with_copies(terms, count);
  }

 private:
  static_assert(row_tiles * vectors <= 4);

  // A left operand; the tile's rows are `spacing` words apart.
  struct Left {
    const float* first;
    std::int64_t spacing;
  };

  void run_in_place(const TermTile* terms, std::int64_t count) {
    for (std::size_t group = 0; group < groups_; ++group) {
      const Rows& rows = rows_[group];
      begin_sums(rows);
      for (std::int64_t term = 0; term < count; ++term) {
        Left left[row_tiles];
        for (int r = 0; r < row_tiles; ++r) {
          fetch_next();
          left[r] = left_in_place(rows[r], terms[term].runs[0].left);
        }
        multiply(terms[term], left);
      }
      end_sums(rows);
    }
  }

  // Loading a tile from memory that was just written would stall, so copies are made two steps ahead.
  void run_with_copies(const TermTile* terms, std::int64_t count) {
    Place prepared;
    Place multiplied;
    for (int step = 0; step < ahead && prepared.group < groups_; ++step) prepare(prepared, terms, count);
    while (multiplied.group < groups_) {
      if (prepared.group < groups_) prepare(prepared, terms, count);
      const Rows& rows = rows_[multiplied.group];
      if (multiplied.term == 0) begin_sums(rows);
      multiply(terms[multiplied.term], left_[multiplied.step % kept]);
      if (multiplied.term + 1 == count) end_sums(rows);
      multiplied.advance(count);
    }
  }

  static constexpr int ahead = 2;
  static constexpr std::size_t kept = 4;  // steps: more than between copying and multiplying

  struct Place {
    std::size_t group = 0;  // of rows
    std::int64_t term = 0;  // index of the tile of terms
    std::size_t step = 0;

    void advance(std::int64_t terms) {
      ++step;
      if (++term == terms) {
        term = 0;
        ++group;
      }
    }
  };

  void fetch_next() const {
    if (call_.prefetch != nullptr) fetch(call_.prefetch->next());
  }

  void prepare(Place& place, const TermTile* terms, std::int64_t count) {
    for (int r = 0; r < row_tiles; ++r) {
      fetch_next();
      left_[place.step % kept][r] = left_of(rows_[place.group][r], terms[place.term], copies_[place.step % kept][r]);
    }
    place.advance(count);
  }

  Left left_in_place(const TileRows& rows, std::int64_t term) const {
    return {call_.left + call_.left_offsets[rows.first] + term, rows.spacing};
  }

  Left left_of(const TileRows& rows, const TermTile& terms, float* copy) const {
    if (rows.spacing != 0 && terms.is_one_run()) return left_in_place(rows, terms.runs[0].left);
    if (rows.count > 0) copy_left(call_, rows, terms, copy);
    return {copy, tile_side};
  }

  static void multiply(const TermTile& term, const Left* left) {
    for_each_constant<vectors>([&](auto v) {
      load_tile<6 + v % 2>(term.right + v * term.right_stride, tile_side);
      for_each_constant<row_tiles>([&](auto r) {
        if (v == 0 || row_tiles > 2) load_tile<4 + r % 2>(left[r].first, left[r].spacing);
        add_tile_product<r * vectors + v, 4 + r % 2, 6 + v % 2>();
      });
    });
  }

  void begin_sums(const Rows& rows) const {
    for_each_constant<row_tiles>([&](auto r) {
      const bool adds = accumulate_ == Accumulate::add && rows[r].out_spacing != 0;
      for_each_constant<vectors>([&](auto v) {
        constexpr int sums = r * vectors + v;
        adds ? load_tile<sums>(out_of(rows[r], v), rows[r].out_spacing) : clear_tile<sums>();
      });
    });
  }

  void end_sums(const Rows& rows) {
    for_each_constant<row_tiles>([&](auto r) {
      for_each_constant<vectors>([&](auto v) {
        constexpr int sums = r * vectors + v;
        if (rows[r].out_spacing != 0) {
          store_tile<sums>(out_of(rows[r], v), rows[r].out_spacing);
        } else {
          store_tile<sums>(sums_[v], tile_side);
        }
      });
      if (rows[r].out_spacing == 0) take_sums(rows[r]);
    });
  }

  float* out_of(const TileRows& rows, std::int64_t v) const {
    return call_.out + call_.out_offsets[rows.first] + v * call_.out_stride;
  }

  void take_sums(const TileRows& rows) const {
    for (std::int64_t row = 0; row < rows.count; ++row) {
      float* out = call_.out + call_.out_offsets[rows.first + row];
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < vectors; ++v, out += call_.out_stride) {
        const Floats sum = load(sums_[v] + rows.at[row] * tile_side);
        store(accumulate_ == Accumulate::add ? load(out) + sum : sum, out);
      }
    }
  }

  const Products& call_;
  const Rows* rows_;
  std::size_t groups_;
  Accumulate accumulate_;
  Left left_[kept][row_tiles];
  alignas(64) float copies_[kept][row_tiles][tile_words];
  alignas(64) float sums_[vectors][tile_words];
};

inline std::int64_t ceil_of(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

inline std::int64_t tiles_of_terms(const Products& call) {
  std::int64_t steps = 0;
  for (std::int64_t i = 0; i < call.segment_count; ++i) steps += call.segments[i].steps;
  return ceil_of(steps, tile_side);
}

// All terms of some rows. The right operands of about `max_terms` tiles stay in the L1 cache while the rows pass.
template <int row_tiles, int vectors>
void multiply_rows(const Products& call, const TileRows (*rows)[row_tiles], std::size_t groups) {
  constexpr std::int64_t max_terms = vectors == 2 ? 10 : 32 / vectors;  // tiles
  const std::int64_t tiles = tiles_of_terms(call);
  const std::int64_t at_once = tiles > 0 ? ceil_of(tiles, ceil_of(tiles, max_terms)) : 1;
  alignas(64) float copies[max_terms * vectors * tile_words];
  TermTile terms[max_terms];
  TermTiles stream(call);
  Accumulate accumulate = call.accumulate;
  do {
    std::int64_t count = 0;
    do {
      stream.next(terms[count], copies + count * vectors * tile_words);
    } while (++count < at_once && !stream.is_at_end());
    TileProducts<row_tiles, vectors>(call, rows, groups, accumulate).run(terms, count);
    accumulate = Accumulate::add;
  } while (!stream.is_at_end());
}

template <int vectors>
void multiply_in_tiles(const Products& call) {
  constexpr int row_tiles = 4 / vectors;
  constexpr std::size_t max_groups = 64;
  TileRows rows[max_groups][row_tiles];
  std::int64_t next = 0;
  while (next < call.rows) {
    std::size_t groups = 0;
    for (; groups < max_groups && next < call.rows; ++groups) {
      for (TileRows& tile : rows[groups]) {
        tile = next < call.rows ? rows_from(call, next) : TileRows{};
        next += tile.count;
      }
    }
    multiply_rows<row_tiles, vectors>(call, rows, groups);
  }
}

template <int vectors>
void pair_products_of(const Products& call) {
  if (call.vectors == vectors) {
    multiply_in_tiles<vectors>(call);
  } else if constexpr (vectors > 1) {
    pair_products_of<vectors - 1>(call);
  }
}

// Two rows of tiles by two vectors need fewer loads than one by four, but read the left operand more often.
void pair_products(const Products& call) {
  constexpr std::int64_t many_terms = 16;
  const int at_once = tiles_of_terms(call) < many_terms ? max_vectors : 2;
  begin_tiles();
  Products part = call;
  for (int first = 0; first < call.vectors; first += at_once) {
    part.vectors = call.vectors - first < at_once ? call.vectors - first : at_once;
    part.right = call.right + first * call.right_stride;
    part.out = call.out + first * call.out_stride;
    pair_products_of<max_vectors>(part);
  }
  end_tiles();
}
