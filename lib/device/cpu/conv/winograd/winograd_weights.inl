// Weights to points, and their gradients back. Included inside a namespace per instruction set, after
// winograd_stride2.inl.

// Rows of the first and the second vector's halves, interleaved.
template <std::int64_t half>
inline Floats interleave(Floats a, Floats b) {
  if constexpr (lanes == 8) {
    constexpr int s = half * 4;
    return __builtin_shufflevector(a, b, s, s + 8, s + 1, s + 9, s + 2, s + 10, s + 3, s + 11);
  } else {
    constexpr int s = half * 8;
    return __builtin_shufflevector(a, b, s, s + 16, s + 1, s + 17, s + 2, s + 18, s + 3, s + 19, s + 4, s + 20, s + 5,
                                   s + 21, s + 6, s + 22, s + 7, s + 23);
  }
}

// [B][B]: interleaving rows half the matrix apart, log2(B) times, transposes it.
inline void transpose(const float* from, float* to) {
  Floats rows[lanes];
  Floats next[lanes];
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < lanes; ++i) rows[i] = load(from + i * lanes);
#pragma GCC unroll 4
  for (std::int64_t size = lanes; size > 1; size /= 2) {
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < lanes / 2; ++i) {
      next[2 * i] = interleave<0>(rows[i], rows[i + lanes / 2]);
      next[2 * i + 1] = interleave<1>(rows[i], rows[i + lanes / 2]);
    }
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < lanes; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < lanes; ++i) store(rows[i], to + i * lanes);
}

template <typename Form>
void transform_weights(const float* weights, WeightOrder order, const PointVectors& u) {
  constexpr std::int64_t block = lanes * lanes;
  float turned[taps * block];
  if (order == WeightOrder::turned) {
    for (std::int64_t tap = 0; tap < taps; ++tap) transpose(weights + tap * block, turned + (taps - 1 - tap) * block);
    weights = turned;
  }
  for (std::int64_t row = 0; row < lanes; ++row) {
    const float* values = weights + row * lanes;
    to_points<typename Form::Weight>(
        0, 3, [=](int r, int c) { return load(values + (r * 3 + c) * block); }, u.data + row * u.vector_stride,
        u.point_stride);
  }
}

template <typename Form>
void finish_gradient(const PointVectors& d, std::int64_t pieces, std::int64_t piece_stride, float* dweights,
                     Accumulate accumulate) {
  constexpr std::int64_t block = lanes * lanes;
  for (std::int64_t row = 0; row < lanes; ++row) {
    const float* sums = d.data + row * d.vector_stride;
    const auto total = [&](int point) {
      const float* at = sums + point * d.point_stride;
      Floats sum = load(at);
      for (std::int64_t piece = 1; piece < pieces; ++piece) sum += load(at + piece * piece_stride);
      return sum;
    };
    from_points<typename Form::WeightGradient>(total, [&](int r, const Floats(&values)[3]) {
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
        float* to = dweights + (r * 3 + c) * block + row * lanes;
        store(accumulate == Accumulate::add ? load(to) + values[c] : values[c], to);
      }
    });
  }
}
