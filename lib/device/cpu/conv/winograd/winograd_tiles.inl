// Winograd's transforms of whole ranges of tiles: pixels to V and Y, M to outputs, weights to U and D to weight
// gradients. Transforms also apply deferred norms, ReLU masks and norm sums. Transforms of one tile are in
// winograd_transforms.inl, layouts in winograd_loops.hpp. Included in a namespace per instruction set, after
// winograd_transforms.inl and words.inl.

namespace {

// Writers of transformed vectors. operator() takes a vector's number and compute(put), which puts all its points.
// Vectors come in order; end() gets their number.
//
// Each vector by itself: floats, or pairs of neighboring channels.
template <typename Element>
struct EachByItself {
  explicit EachByItself(const PointVectors& vectors) : to(vectors) {}

  template <typename Compute>
  void operator()(std::int64_t vector, Compute compute) {
    auto* const first = reinterpret_cast<Element*>(to.data + vector * to.vector_stride);
    const std::int64_t stride = to.point_stride * values_of_word<Element>;
    compute([=](int point, Floats value) { store(value, first + point * stride); });
  }
  void end(std::int64_t /*vectors*/) {}

  const PointVectors& to;
};

// Two consecutive vectors as pairs, for sums over tiles or input channels. The last one's partner may be zero.
template <int points>
struct InPairs {
  explicit InPairs(const PointVectors& vectors) : to(vectors) {}

  template <typename Compute>
  void operator()(std::int64_t vector, Compute compute) {
    if (vector % 2 == 0) {
      compute([this](int point, Floats value) { low[point] = value; });
    } else {
      float* const first = pair(vector / 2);
      compute(
          [=, this](int point, Floats value) { store(pairs_of(low[point], value), first + point * to.point_stride); });
    }
  }
  void end(std::int64_t vectors) {
    if (vectors % 2 == 0) return;
    float* const first = pair(vectors / 2);
    for (int point = 0; point < points; ++point) store(pairs_of(low[point], zero), first + point * to.point_stride);
  }
  float* pair(std::int64_t at) const { return to.data + at * to.vector_stride; }

  const PointVectors& to;
  Floats low[points] = {};
};

template <typename Word>
using AsFactors = EachByItself<std::conditional_t<Word::values == 1, F32, Bf16>>;
template <typename Word, int points>
using AsTerms = std::conditional_t<Word::values == 1, EachByItself<F32>, InPairs<points>>;

// The part [first, last) of a line of `size` pixels that lies inside the map. The line starts at pixel `begin`.
struct Inside {
  Inside(std::int64_t begin, std::int64_t map_size, std::int64_t size)
      : first(static_cast<int>(begin < 0 ? -begin : 0)),
        last(static_cast<int>(map_size - begin < size ? map_size - begin : size)) {}
  bool holds(int at) const { return first <= at && at < last; }
  bool whole(int size) const { return first == 0 && last == size; }

  int first, last;
};

constexpr int largest_window = 9;

struct NoNorm {
  Floats operator()(Floats x, int /*row*/) const { return x; }
};

// Padding reads as zero and gets no offset, so it stays zero after the norm.
template <Activation activation>
struct Norm {
  Norm(const BlockNorm& norm, const Inside& rows) : factor(load(norm.rows + norm_factor * lanes)) {
    const Floats inside = load(norm.rows + norm_offset * lanes);
    for (int row = 0; row < largest_window; ++row) offset[row] = rows.holds(row) ? inside : zero;
  }
  Floats operator()(Floats x, int row) const {
    const Floats z = x * factor + offset[row];
    return activation == Activation::relu ? relu(z) : z;
  }

  Floats factor;
  Floats offset[largest_window];
};

template <typename Storage>
constexpr Storage no_pixels[largest_window * lanes] = {};

// Transforms the square of Transform::from pixels at (top, left). Pixels outside the map are zero.
template <typename Transform, typename Storage, typename MakeNorm, typename Put>
inline void transform_square(const TileGrid& grid, const Storage* plane, std::int64_t top, std::int64_t left,
                             MakeNorm make_norm, Put put) {
  constexpr int size = Transform::from;
  const Inside rows(top, grid.height, size);
  const Inside columns(left, grid.width, size);
  const Storage* start[size];
#pragma GCC unroll 9
  for (int row = 0; row < size; ++row) {
    start[row] = rows.holds(row) ? plane + ((top + row) * grid.width + left) * lanes : no_pixels<Storage>;
  }
  const auto norm = make_norm(rows);
  to_points<Transform>(
      columns.first, columns.last, [&](int row, int column) { return norm(load(start[row] + column * lanes), row); },
      put);
}

template <typename Transform, typename Storage, typename Keep, typename MakeNorm>
void transform_tiles(const TileGrid& grid, Tiles tiles, const void* map, MakeNorm make_norm, const PointVectors& to) {
  Keep keep(to);
  const auto* first_image = static_cast<const Storage*>(map);
  for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
    const Tile& at = tiles.first[tile];
    keep(tile, [&](auto put) {
      transform_square<Transform>(grid, first_image + at.image * grid.image_stride,
                                  at.row * Transform::step - grid.padding, at.column * Transform::step - grid.padding,
                                  make_norm, put);
    });
  }
  keep.end(tiles.count);
}

template <typename Transform, typename Storage, typename Keep>
void transform_windows(const TileGrid& grid, Tiles tiles, const void* x, const BlockNorm& norm, const PointVectors& v) {
  if (norm.rows == nullptr) {
    transform_tiles<Transform, Storage, Keep>(
        grid, tiles, x, [](const Inside&) { return NoNorm(); }, v);
  } else if (norm.activation == Activation::relu) {
    transform_tiles<Transform, Storage, Keep>(
        grid, tiles, x, [&](const Inside& rows) { return Norm<Activation::relu>(norm, rows); }, v);
  } else {
    transform_tiles<Transform, Storage, Keep>(
        grid, tiles, x, [&](const Inside& rows) { return Norm<Activation::none>(norm, rows); }, v);
  }
}

// Applies the deferred batch-norm backward to dz, stores the result in dx and transforms it. Tiles do not overlap and
// have no padding.
template <typename Transform, typename Storage, typename Keep>
void transform_deferred_gradient(const TileGrid& grid, Tiles tiles, const Storage* dz, const BlockGradient& pending,
                                 const PointVectors& y) {
  constexpr int size = Transform::from;
  Keep keep(y);
  const NormVectors norm(pending.rows);
  const auto* x = static_cast<const Storage*>(pending.x);
  auto* dx = static_cast<Storage*>(pending.dx);
  for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
    const Tile& at = tiles.first[tile];
    const std::int64_t top = at.row * size;
    const std::int64_t left = at.column * size;
    const Inside rows(top, grid.height, size);
    const Inside columns(left, grid.width, size);
    const std::int64_t corner = at.image * grid.image_stride + (top * grid.width + left) * lanes;
    Floats values[size][size];
    for (int row = 0; row < size; ++row) {
      for (int column = 0; column < size; ++column) {
        values[row][column] = zero;
        if (!rows.holds(row) || !columns.holds(column)) continue;
        const std::int64_t place = corner + (row * grid.width + column) * lanes;
        values[row][column] = norm.backward(load(x + place), load(dz + place));
        store(values[row][column], dx + place);
      }
    }
    const auto gradient = [&](int row, int column) { return values[row][column]; };
    keep(tile, [&](auto put) { to_points<Transform>(0, size, gradient, put); });
  }
  keep.end(tiles.count);
}

template <typename Transform, typename Storage, typename Keep>
void transform_gradient(const TileGrid& grid, Tiles tiles, const void* dy, const BlockGradient& norm,
                        const PointVectors& y) {
  if (norm.rows == nullptr) {
    transform_tiles<Transform, Storage, Keep>(
        grid, tiles, dy, [](const Inside&) { return NoNorm(); }, y);
  } else {
    transform_deferred_gradient<Transform, Storage, Keep>(grid, tiles, static_cast<const Storage*>(dy), norm, y);
  }
}

// Two sums over pixels, in fp32 for a run of tiles and in double beyond.
class TileSums {
 public:
  explicit TileSums(const BlockSums& sums) : sums_(sums) {}

  void add(Floats first, Floats second) {
    tile_first_ += first;
    tile_second_ += second;
  }
  void end_tile() {
    first_ += tile_first_;
    second_ += tile_second_;
    tile_first_ = zero;
    tile_second_ = zero;
    if (++tiles_ == run_tiles) end_run();
  }
  void end_run() {
    fold(first_, sums_.first);
    fold(second_, sums_.second);
    first_ = zero;
    second_ = zero;
    tiles_ = 0;
  }

 private:
  static constexpr std::int64_t run_tiles = 32;

  BlockSums sums_;
  Floats tile_first_ = {}, tile_second_ = {}, first_ = {}, second_ = {};
  std::int64_t tiles_ = 0;
};

// What is done to outputs before they are stored. operator() takes a vector and its place, in elements from the first
// image on, and returns what is stored.
struct AsComputed {
  Floats operator()(Floats y, std::int64_t /*place*/) const { return y; }
  void end_tile() {}
  void end_run() {}
};

template <typename Storage>
struct Added : AsComputed {
  explicit Added(const void* y) : before(static_cast<const Storage*>(y)) {}
  Floats operator()(Floats y, std::int64_t place) const { return load(before + place) + y; }

  const Storage* before;
};

struct WithMoments : TileSums {
  explicit WithMoments(const BlockSums& sums) : TileSums(sums) {}
  Floats operator()(Floats y, std::int64_t /*place*/) {
    add(y, y * y);
    return y;
  }
};

// With a previous norm: takes the gradient through its activation and sums it. `Before`: AsComputed or Added.
template <typename Storage, ActivationGradient activation, typename Before>
struct GradientOfNorm : TileSums {
  GradientOfNorm(const BlockOutput& output, Before what_is_there)
      : TileSums(output.sums),
        before(what_is_there),
        x(static_cast<const Storage*>(output.norm_x)),
        mask_y(static_cast<const Storage*>(output.mask_y)),
        norm(output.norm_rows) {}
  Floats operator()(Floats y, std::int64_t place) {
    const Floats value = load(x + place);
    const Floats dz = gradient_before<activation>(norm, value, mask_y, place, before(y, place));
    add(dz, dz * (value - norm.mean));
    return dz;
  }

  Before before;
  const Storage* x;
  const Storage* mask_y;
  NormVectors norm;
};

template <typename Output, typename Storage, typename Finish>
inline void output_tile(const TileGrid& grid, const Tile& at, const float* m, std::int64_t point_stride,
                        Storage* first_image, Finish& finish) {
  constexpr int size = Output::to;
  const std::int64_t top = at.row * size;
  const std::int64_t left = at.column * size;
  const Inside rows(top, grid.height, size);
  const Inside columns(left, grid.width, size);
  const std::int64_t corner = at.image * grid.image_stride + (top * grid.width + left) * lanes;
  const bool whole = rows.whole(size) && columns.whole(size);
  const auto put = [&](int row, int column, Floats value) {
    const std::int64_t place = corner + (row * grid.width + column) * lanes;
    store(finish(value, place), first_image + place);
  };
  from_points<Output>([&](int point) { return load(m + point * point_stride); },
                      [&](int row, const Floats(&values)[size]) {
                        if (whole) {
#pragma GCC unroll 8
                          for (int column = 0; column < size; ++column) put(row, column, values[column]);
                        } else if (rows.holds(row)) {
                          for (int column = 0; column < columns.last; ++column) put(row, column, values[column]);
                        }
                      });
}

template <typename Output, typename Storage, typename Finish>
void output_tiles(const TileGrid& grid, Tiles tiles, const PointVectors& m, void* y, Finish finish) {
  for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
    const Tile& at = tiles.first[tile];
    output_tile<Output>(grid, at, m.data + tile * m.vector_stride, m.point_stride, static_cast<Storage*>(y), finish);
    finish.end_tile();
  }
  finish.end_run();
}

template <typename Output, typename Storage, typename Before>
void gradient_outputs(const TileGrid& grid, Tiles tiles, const PointVectors& m, void* y, const BlockOutput& output,
                      Before before) {
  for_activation(output.activation, [&]<ActivationGradient form>() {
    output_tiles<Output, Storage>(grid, tiles, m, y, GradientOfNorm<Storage, form, Before>(output, before));
  });
}

template <typename Form, typename Storage>
void transform_outputs(const TileGrid& grid, Tiles tiles, const PointVectors& m, void* y, const BlockOutput& output) {
  using Output = typename Form::Output;
  if constexpr (Form::computes_dx) {
    if (output.norm_x != nullptr && output.accumulate == Accumulate::add) {
      return gradient_outputs<Output, Storage>(grid, tiles, m, y, output, Added<Storage>(y));
    }
    if (output.norm_x != nullptr) {
      return gradient_outputs<Output, Storage>(grid, tiles, m, y, output, AsComputed());
    }
    if (output.accumulate == Accumulate::add) {
      return output_tiles<Output, Storage>(grid, tiles, m, y, Added<Storage>(y));
    }
  }
  if constexpr (Form::computes_y) {
    if (output.sums.first != nullptr) {
      return output_tiles<Output, Storage>(grid, tiles, m, y, WithMoments(output.sums));
    }
  }
  output_tiles<Output, Storage>(grid, tiles, m, y, AsComputed());
}

// Weights to U, and D to the gradients of weights.
template <typename Transform, typename Keep>
void transform_weights(const float* weights, WeightOrder order, const PointVectors& u) {
  constexpr std::int64_t block = lanes * lanes;
  Keep keep(u);
  float turned[taps * block];
  if (order == WeightOrder::turned) {
    for (std::int64_t tap = 0; tap < taps; ++tap)
      transpose(weights + tap * block, lanes, lanes, turned + (taps - 1 - tap) * block);
    weights = turned;
  }
  for (std::int64_t row = 0; row < lanes; ++row) {
    const float* values = weights + row * lanes;
    keep(row, [=](auto put) {
      to_points<Transform>(
          0, 3, [=](int r, int c) { return load(values + (r * 3 + c) * block); }, put);
    });
  }
}

template <typename Form>
void finish_gradient(const PointVectors& d, float* dweights, Accumulate accumulate) {
  constexpr std::int64_t block = lanes * lanes;
  for (std::int64_t row = 0; row < lanes; ++row) {
    const float* sums = d.data + row * d.vector_stride;
    const auto sum = [&](int point) { return load(sums + point * d.point_stride); };
    from_points<typename Form::WeightGradient>(sum, [&](int r, const Floats(&values)[3]) {
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
        float* to = dweights + (r * 3 + c) * block + row * lanes;
        store(accumulate == Accumulate::add ? load(to) + values[c] : values[c], to);
      }
    });
  }
}

}  // namespace
