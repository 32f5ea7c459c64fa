// The one-dimensional transforms of stride 2. Included inside a namespace per instruction set, after
// winograd_points.inl.
//
// Of the pixels that a row of outputs reads, every second one meets only the weight in the middle, and the others the
// two outer weights, as in a convolution of stride 1:
//
//   y[i] = w[1] * x[2i + 1] + (w[0] * x[2i] + w[2] * x[2i + 2])        x from a tile's first pixel on
//
// Four outputs take four products for the former and, by F(4, 2), five for the latter: 9 points a dimension.
// Backward-data is the same seen from dx: every second pixel of it has one weight, the others two.

// F(4, 2) by the points 0, 1, -1, 2 and infinity: fp32's error is a tenth of F(4, 3)'s.
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

// dy as outputs: the gradients of 4 of them to 9 points.
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
};

// dy as what backward-data reads: 5 pixels for 8 of dx.
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
};
