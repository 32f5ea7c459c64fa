// Vectors of `lanes` channels, by the compiler's vector extensions, and helpers for all loops. Included first in the
// namespace of an instruction set, before its rounding to bf16.

using Floats = float __attribute__((vector_size(lanes * 4)));
using Words = std::uint32_t __attribute__((vector_size(lanes * 4)));
using Halves = std::uint16_t __attribute__((vector_size(lanes * 2)));
using Pairs = std::uint16_t __attribute__((vector_size(lanes * 4)));    // of halves
using AllBytes = std::uint8_t __attribute__((vector_size(lanes * 4)));  // of words

// Storage types: converted to fp32 by load() and from fp32 by store().
using F32 = float;
struct Bf16 {
  std::uint16_t bits;
};
template <typename Element>
constexpr std::int64_t values_of_word = 1;  // of 32 bits
template <>
inline constexpr std::int64_t values_of_word<Bf16> = 2;

template <typename Vector, typename Element>
inline Vector load_raw(const Element* address) {
  Vector vector;
  __builtin_memcpy(&vector, address, sizeof vector);
  return vector;
}

template <typename Vector, typename Element>
inline void store_raw(Vector vector, Element* address) {
  __builtin_memcpy(address, &vector, sizeof vector);
}

// factor * values. GCC 14 would broadcast into a vector that is wider than a register place by place, through memory.
template <typename Vector>
inline Vector scaled(float factor, Vector values) {
  if constexpr (lanes > register_lanes) {
    Vector factors;
    for (unsigned i = 0; i < sizeof values / sizeof factor; ++i) factors[i] = factor;
    return factors * values;
  } else {
    return factor * values;
  }
}

inline Floats load(const float* address) { return load_raw<Floats>(address); }
// Widens bf16 to fp32. The compiler's own conversion of 16-bit lanes takes several instructions.
template <std::int64_t count, typename Vector>
inline Floats widen(Vector halves) {
  if constexpr (count == 8) {
    return reinterpret_cast<Floats>(
        __builtin_shufflevector(Vector{}, halves, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  } else {
    constexpr __mmask16 all = 0xffff;  // the unmasked intrinsic triggers an uninitialized-value warning
    const __m512i words = _mm512_maskz_cvtepu16_epi32(all, reinterpret_cast<__m256i>(halves));
    return reinterpret_cast<Floats>(load_raw<Words>(&words) << 16);
  }
}

inline Floats load(const Bf16* address) { return widen<lanes>(load_raw<Halves>(address)); }

// A word for each of `lanes` bytes, and back from words below 256. The compiler's own conversions take lane after lane.
template <std::int64_t count>
inline Words load_bytes(const std::uint8_t* address) {
  if constexpr (count == 8) {
    using Twice = std::uint64_t __attribute__((vector_size(lanes * 4)));
    const auto bytes = reinterpret_cast<AllBytes>(Twice{} + load_raw<std::uint64_t>(address));
    return reinterpret_cast<Words>(__builtin_shufflevector(bytes, bytes, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3,
                                                           -1, -1, -1, 20, -1, -1, -1, 21, -1, -1, -1, 22, -1, -1, -1,
                                                           23, -1, -1, -1)) &
           0xffU;
  } else {
    constexpr __mmask16 all = 0xffff;
    const __m512i words = _mm512_maskz_cvtepu8_epi32(all, load_raw<__m128i>(address));
    return load_raw<Words>(&words);
  }
}

template <std::int64_t count>
inline void store_bytes(Words words, std::uint8_t* address) {
  if constexpr (count == 8) {
    const auto all = reinterpret_cast<AllBytes>(words);
    const auto bytes = __builtin_shufflevector(all, all, 0, 4, 8, 12, 16, 20, 24, 28, -1, -1, -1, -1, -1, -1, -1, -1);
    __builtin_memcpy(address, &bytes, count);
  } else {
    constexpr __mmask16 all = 0xffff;
    store_raw(_mm512_maskz_cvtepi32_epi8(all, load_raw<__m512i>(&words)), address);
  }
}

inline void store(Floats value, float* address) { store_raw(value, address); }
constexpr Floats zero = {};

// NaN passes, so a diverging network shows it.
inline Floats relu(Floats value) { return zero > value ? zero : value; }
inline Floats masked_gradient(Floats output, Floats gradient) { return output <= zero ? zero : gradient; }

// Adds B fp32 sums to B double ones.
inline void fold(Floats values, double* sums) {
  for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<double>(values[lane]);
}

// fp32 sums over short runs, double beyond, so the error does not grow with the image. Interleaved sums hide the
// latency of the additions.
template <int quantities>
struct RunningSums {
  static constexpr int interleaved = 4;
  static constexpr std::int64_t run_pixels = 512;

  Floats partial[quantities][interleaved] = {};
  std::int64_t pending = 0;

  void count(std::int64_t pixels, double* sums) {
    pending += pixels;
    if (pending >= run_pixels) flush(sums);
  }
  void flush(double* sums) {
    for (int quantity = 0; quantity < quantities; ++quantity) {
      Floats(&parts)[interleaved] = partial[quantity];
      fold((parts[0] + parts[1]) + (parts[2] + parts[3]), sums + quantity * lanes);
      for (Floats& part : parts) part = zero;
    }
    pending = 0;
  }
};

// Calls body(image, element within its plane, interleaved sum) for every pixel of every plane, and keeps fp32 sums
// short.
template <int quantities, typename Body>
inline void sum_over_images(std::int64_t images, std::int64_t pixels, double* sums, Body body) {
  using Sums = RunningSums<quantities>;
  for (std::int64_t i = 0; i < quantities * lanes; ++i) sums[i] = 0;
  Sums running;
  for (std::int64_t image = 0; image < images; ++image) {
    for (std::int64_t first = 0; first < pixels; first += Sums::run_pixels) {
      const std::int64_t rest = pixels - first;
      const std::int64_t count = rest < Sums::run_pixels ? rest : Sums::run_pixels;
      const std::int64_t start = first * lanes;
      std::int64_t pixel = 0;
      for (; pixel + Sums::interleaved <= count; pixel += Sums::interleaved) {
        body(image, start + pixel * lanes, 0, running.partial);
        body(image, start + (pixel + 1) * lanes, 1, running.partial);
        body(image, start + (pixel + 2) * lanes, 2, running.partial);
        body(image, start + (pixel + 3) * lanes, 3, running.partial);
      }
      for (; pixel < count; ++pixel) body(image, start + pixel * lanes, 0, running.partial);
      running.count(count, sums);
    }
  }
  running.flush(sums);
}

// body(element, interleaved sum), if all planes are in one map.
template <int quantities, typename Body>
inline void sum_over(Planes planes, double* sums, Body body) {
  sum_over_images<quantities>(planes.images, planes.pixels, sums,
                              [=](std::int64_t image, std::int64_t at, int part, auto& partial) {
                                body(image * planes.stride + at, part, partial);
                              });
}

// Calls body(element index) for every vector of every plane.
template <typename Body>
inline void for_each_vector(Planes planes, Body body) {
  for (std::int64_t image = 0; image < planes.images; ++image) {
    const std::int64_t base = image * planes.stride;
    for (std::int64_t pixel = 0; pixel < planes.pixels; ++pixel) body(base + pixel * lanes);
  }
}

// The rows of a norm in registers.
struct NormVectors {
  explicit NormVectors(const float* rows)
      : factor(load(rows + norm_factor * lanes)),
        offset(load(rows + norm_offset * lanes)),
        mean(load(rows + norm_mean * lanes)),
        x_factor(load(rows + norm_x_factor * lanes)),
        mean_dz(load(rows + norm_mean_dz * lanes)) {}

  // One function for forward and for the ReLU mask in backward, so both round alike.
  Floats forward(Floats x) const { return x * factor + offset; }
  Floats backward(Floats x, Floats dz) const { return factor * ((dz - mean_dz) + (x - mean) * x_factor); }

  Floats factor, offset, mean, x_factor, mean_dz;
};

// Interleaves rows i and i + B/2. After log2(B) rounds, rows are columns.
template <typename Vector>
inline Vector interleave_low(Vector a, Vector b) {
  if constexpr (sizeof(Vector) == 8 * sizeof(float)) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  } else {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
}
template <typename Vector>
inline Vector interleave_high(Vector a, Vector b) {
  if constexpr (sizeof(Vector) == 8 * sizeof(float)) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  } else {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}

// Transposes in place.
inline void transpose(Floats (&matrix)[lanes]) {
  constexpr std::int64_t half = lanes / 2;
#pragma GCC unroll 4
  for (std::int64_t round = 1; round < lanes; round *= 2) {
    Floats next[lanes];
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < half; ++i) {
      next[2 * i] = interleave_low(matrix[i], matrix[i + half]);
      next[2 * i + 1] = interleave_high(matrix[i], matrix[i + half]);
    }
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < lanes; ++i) matrix[i] = next[i];
  }
}

// transposed[column][row] = matrix[row][column] for B columns and `rows` rows, `stride` floats apart. Zero after
// `rows`.
inline void transpose(const float* from, std::int64_t stride, std::int64_t rows, float* transposed) {
  Floats matrix[lanes];
  for (std::int64_t row = 0; row < lanes; ++row) matrix[row] = row < rows ? load(from + row * stride) : zero;
  transpose(matrix);
#pragma GCC unroll 16
  for (std::int64_t row = 0; row < lanes; ++row) store(matrix[row], transposed + row * lanes);
}
