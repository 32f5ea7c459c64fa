// The one-dimensional Winograd transforms, and their application to two dimensions. Notation: winograd_loops.hpp.
// Included in a namespace per instruction set, after vectors.inl.
//
// Stride 1 is F(4, 3): 4 outputs of 3 weights by 6 points, derived by Toom-Cook interpolation at 0, +-11/16, +-3/2 and
// infinity. The usual 0, +-1, +-2 and infinity double the error. All products of 11/16 and 3/2 here are exact in fp32.

namespace {

constexpr float near = 11.0F / 16;
constexpr float far = 3.0F / 2;
constexpr float near2 = near * near;
constexpr float far2 = far * far;
constexpr float both2 = near2 * far2;
constexpr float sum2 = near2 + far2;

// Scale factors of the weights at 0, +-near and +-far.
constexpr float at_zero = 1 / both2;
constexpr float at_near = 1 / (2 * near2 * (near2 - far2));
constexpr float at_far = 1 / (2 * far2 * (far2 - near2));

// Bt: 6 values of a window to 6 points.
struct WindowTransform {
  static constexpr int from = 6;
  static constexpr int to = 6;
  static constexpr int step = 4;  // pixels between windows of consecutive tiles
  static void apply(const Floats (&x)[6], Floats (&t)[6]) {
    const Floats near_even = x[4] - far2 * x[2];
    const Floats near_odd = x[3] - far2 * x[1];
    const Floats far_even = x[4] - near2 * x[2];
    const Floats far_odd = x[3] - near2 * x[1];
    t[0] = (x[4] - sum2 * x[2]) + both2 * x[0];
    t[1] = near_even + near * near_odd;
    t[2] = near_even - near * near_odd;
    t[3] = far_even + far * far_odd;
    t[4] = far_even - far * far_odd;
    t[5] = (x[5] - sum2 * x[3]) + both2 * x[1];
  }
};

// A: the gradients of 4 outputs to 6 points.
struct GradientTransform {
  static constexpr int from = 4;
  static constexpr int to = 6;
  static constexpr int step = 4;
  static void apply(const Floats (&y)[4], Floats (&t)[6]) {
    const Floats near_even = y[0] + near2 * y[2];
    const Floats near_odd = y[1] + near2 * y[3];
    const Floats far_even = y[0] + far2 * y[2];
    const Floats far_odd = y[1] + far2 * y[3];
    t[0] = y[0];
    t[1] = near_even + near * near_odd;
    t[2] = near_even - near * near_odd;
    t[3] = far_even + far * far_odd;
    t[4] = far_even - far * far_odd;
    t[5] = y[3];
  }
};

// G: 3 weights to 6 points.
struct WeightTransform {
  static constexpr int from = 3;
  static constexpr int to = 6;
  static void apply(const Floats (&w)[3], Floats (&t)[6]) {
    const Floats near_even = at_near * w[0] + (at_near * near2) * w[2];
    const Floats near_odd = (at_near * near) * w[1];
    const Floats far_even = at_far * w[0] + (at_far * far2) * w[2];
    const Floats far_odd = (at_far * far) * w[1];
    t[0] = at_zero * w[0];
    t[1] = near_even + near_odd;
    t[2] = near_even - near_odd;
    t[3] = far_even + far_odd;
    t[4] = far_even - far_odd;
    t[5] = w[2];
  }
};

// At: 6 points to 4 outputs.
struct OutputTransform {
  static constexpr int from = 6;
  static constexpr int to = 4;
  static void apply(const Floats (&m)[6], Floats (&y)[4]) {
    const Floats near_sum = m[1] + m[2];
    const Floats near_difference = m[1] - m[2];
    const Floats far_sum = m[3] + m[4];
    const Floats far_difference = m[3] - m[4];
    y[0] = (m[0] + near_sum) + far_sum;
    y[1] = near * near_difference + far * far_difference;
    y[2] = near2 * near_sum + far2 * far_sum;
    y[3] = (near2 * near) * near_difference + ((far2 * far) * far_difference + m[5]);
  }
};

// Gt: 6 points to the gradients of 3 weights.
struct WeightGradientTransform {
  static constexpr int from = 6;
  static constexpr int to = 3;
  static void apply(const Floats (&m)[6], Floats (&w)[3]) {
    const Floats near_sum = m[1] + m[2];
    const Floats near_difference = m[1] - m[2];
    const Floats far_sum = m[3] + m[4];
    const Floats far_difference = m[3] - m[4];
    w[0] = at_zero * m[0] + (at_near * near_sum + at_far * far_sum);
    w[1] = (at_near * near) * near_difference + (at_far * far) * far_difference;
    w[2] = (at_near * near2) * near_sum + ((at_far * far2) * far_sum + m[5]);
  }
};

struct Stride1 {
  using Window = WindowTransform;
  using Gradient = GradientTransform;
  using Weight = WeightTransform;
  using Output = OutputTransform;
  using WeightGradient = WeightGradientTransform;
  static constexpr bool computes_y = true;   // in forward
  static constexpr bool computes_dx = true;  // in backward-data

  // The point at infinity affects the last output alone.
  static std::uint32_t unneeded_lines(std::int64_t outputs) { return outputs < 4 ? 1U << 5 : 0; }
};

// Unroll factor of loops over columns and rows. With 16 registers, unrolled code runs out of registers and moves twice
// as much data. With the 32 registers of AVX-512, prototype kernels gained 12 to 14 % on a Zen 5.
constexpr int lines_unrolled = lanes == 16 ? 9 : 1;

// Transforms n x n values to all points. value(row, column) reads columns [first, last); the others are zero.
// put(point, value) stores one point.
template <typename Transform, typename Value, typename Put>
inline void to_points(int first, int last, Value value, Put put) {
  constexpr int from = Transform::from;
  constexpr int count = Transform::to;
  Floats rows[count][from];
#pragma GCC unroll lines_unrolled
  for (int column = 0; column < from; ++column) {
    Floats values[from];
    Floats transformed[count] = {};
    if (first <= column && column < last) {
#pragma GCC unroll 9
      for (int row = 0; row < from; ++row) values[row] = value(row, column);
      Transform::apply(values, transformed);
    }
#pragma GCC unroll 9
    for (int row = 0; row < count; ++row) rows[row][column] = transformed[row];
  }
#pragma GCC unroll lines_unrolled
  for (int row = 0; row < count; ++row) {
    Floats transformed[count];
    Transform::apply(rows[row], transformed);
#pragma GCC unroll 9
    for (int column = 0; column < count; ++column) put(row * count + column, transformed[column]);
  }
}

// Transforms all points to n x n values. vector(point) reads one point; take_row(row, values) gets one row at a time.
template <typename Transform, typename Vector, typename TakeRow>
inline void from_points(Vector vector, TakeRow take_row) {
  constexpr int count = Transform::from;
  constexpr int to = Transform::to;
  Floats rows[to][count];
#pragma GCC unroll 9
  for (int column = 0; column < count; ++column) {
    Floats values[count];
    Floats transformed[to];
#pragma GCC unroll 9
    for (int row = 0; row < count; ++row) values[row] = vector(row * count + column);
    Transform::apply(values, transformed);
#pragma GCC unroll 8
    for (int row = 0; row < to; ++row) rows[row][column] = transformed[row];
  }
#pragma GCC unroll 8
  for (int row = 0; row < to; ++row) {
    Floats transformed[to];
    Transform::apply(rows[row], transformed);
    take_row(row, transformed);
  }
}

// The one-dimensional transforms of stride 2.
//
// Every second pixel that a row of outputs reads meets only the middle weight. The other pixels meet the two outer
// weights, as in a convolution with stride 1:
//
//   y[i] = w[1] * x[2i + 1] + (w[0] * x[2i] + w[2] * x[2i + 2])        x counted from the tile's first pixel
//
// Four outputs take four products for the former and, by F(4, 2), five for the latter: 9 points per dimension.
// Backward-data mirrors this: every second pixel of dx has one weight, the others have two.

// F(4, 2) at the points 0, 1, -1, 2 and infinity. Its fp32 error is a tenth of F(4, 3)'s.
inline void two_weights_window(const Floats (&x)[5], Floats* t) {
  t[0] = (x[3] - 2 * x[2]) + (2 * x[0] - x[1]);
  t[1] = (x[3] - x[2]) - 2 * x[1];
  t[2] = (x[3] - 3 * x[2]) + 2 * x[1];
  t[3] = x[3] - x[1];
  t[4] = (x[4] - 2 * x[3]) + (2 * x[1] - x[2]);
}
inline void two_weights_output(const Floats* m, Floats (&y)[4]) {
  const Floats sum = m[1] + m[2];
  const Floats difference = m[1] - m[2];
  y[0] = (m[0] + sum) + m[3];
  y[1] = difference + 2 * m[3];
  y[2] = sum + 4 * m[3];
  y[3] = (difference + 8 * m[3]) + m[4];
}

// x: 9 pixels to 9 points.
struct WindowTransform2 {
  static constexpr int from = 9;
  static constexpr int to = 9;
  static constexpr int step = 8;
  static void apply(const Floats (&x)[9], Floats (&t)[9]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) t[i] = x[2 * i + 1];
    two_weights_window({x[0], x[2], x[4], x[6], x[8]}, t + 4);
  }
};

// dy as outputs: gradients of 4 outputs to 9 points.
struct GradientTransform2 {
  static constexpr int from = 4;
  static constexpr int to = 9;
  static constexpr int step = 4;
  static void apply(const Floats (&y)[4], Floats (&t)[9]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) t[i] = y[i];
    const Floats even = y[0] + y[2];
    const Floats odd = y[1] + y[3];
    t[4] = y[0];
    t[5] = even + odd;
    t[6] = even - odd;
    t[7] = (y[0] + 2 * y[1]) + (4 * y[2] + 8 * y[3]);
    t[8] = y[3];
  }
};

struct WeightTransform2 {
  static constexpr int from = 3;
  static constexpr int to = 9;
  static void apply(const Floats (&w)[3], Floats (&t)[9]) {
    constexpr float sixth = 1.0F / 6;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) t[i] = w[1];
    t[4] = 0.5F * w[0];
    t[5] = -0.5F * (w[0] + w[2]);
    t[6] = sixth * (w[2] - w[0]);
    t[7] = sixth * (w[0] + 2 * w[2]);
    t[8] = w[2];
  }
};

struct OutputTransform2 {
  static constexpr int from = 9;
  static constexpr int to = 4;
  static void apply(const Floats (&m)[9], Floats (&y)[4]) {
    two_weights_output(m + 4, y);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) y[i] += m[i];
  }
};

struct WeightGradientTransform2 {
  static constexpr int from = 9;
  static constexpr int to = 3;
  static void apply(const Floats (&m)[9], Floats (&w)[3]) {
    constexpr float sixth = 1.0F / 6;
    w[0] = 0.5F * (m[4] - m[5]) + sixth * (m[7] - m[6]);
    w[1] = (m[0] + m[1]) + (m[2] + m[3]);
    w[2] = (sixth * (m[6] + 2 * m[7]) - 0.5F * m[5]) + m[8];
  }
};

struct Stride2 {
  using Window = WindowTransform2;
  using Gradient = GradientTransform2;
  using Weight = WeightTransform2;
  using Output = OutputTransform2;
  using WeightGradient = WeightGradientTransform2;
  static constexpr bool computes_y = true;   // in forward
  static constexpr bool computes_dx = false;  // in backward-data

  // Each of the first four points affects one output, the point at infinity the last one.
  static std::uint32_t unneeded_lines(std::int64_t outputs) {
    std::uint32_t lines = outputs < 4 ? 1U << 8 : 0;
    for (std::int64_t line = outputs; line < 4; ++line) lines |= 1U << line;
    return lines;
  }
};

// dy as the input of backward-data: 5 pixels for 8 of dx.
struct BackwardWindowTransform2 {
  static constexpr int from = 5;
  static constexpr int to = 9;
  static constexpr int step = 4;
  static void apply(const Floats (&dy)[5], Floats (&t)[9]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) t[i] = dy[i];
    two_weights_window(dy, t + 4);
  }
};

struct BackwardOutputTransform2 {
  static constexpr int from = 9;
  static constexpr int to = 8;
  static void apply(const Floats (&m)[9], Floats (&dx)[8]) {
    Floats odd[4];
    two_weights_output(m + 4, odd);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      dx[2 * i] = m[i];
      dx[2 * i + 1] = odd[i];
    }
  }
};

struct Stride2Backward : Stride2 {
  using Window = BackwardWindowTransform2;
  using Output = BackwardOutputTransform2;
  static constexpr bool computes_y = false;
  static constexpr bool computes_dx = true;

  // Likewise, but each of the first four points affects every second pixel.
  static std::uint32_t unneeded_lines(std::int64_t outputs) {
    std::uint32_t lines = outputs < 8 ? 1U << 8 : 0;
    for (std::int64_t line = (outputs + 1) / 2; line < 4; ++line) lines |= 1U << line;
    return lines;
  }
};

}  // namespace
