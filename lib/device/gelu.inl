// GELU (Hendrycks and Gimpel 2016), x * Phi(x) with the normal distribution Phi, and its derivative, the same on every
// device. Included by curve.inl.
//
// With t = |x| and E = exp(-t * t / 2):
//
//   value(x) = max(x, 0) - t * E * G(t)              G(t) = Phi(-t) / E
//   derivative(x) = h for x <= 0, 1 - h for x > 0    h = E * (z - t) * K(t)
//                                                    K(t) = (G(t) - t / sqrt(2 * pi)) / (z - t), z the zero of h
//
// So the digits of the value in the tail do not cancel, nor those of the derivative near its zero. G and K are smooth.
// Quotients of polynomials approximate them, a form of Cody 1969 (Rational Chebyshev Approximations for the Error
// Function). All coefficients are positive, so rounding errors stay small. They are our own fits over [0, 13.3], least
// squares with weights that make all maxima of the relative error equal (Lawson 1961): 5e-9 for G, 7e-9 for K, and 6e-9
// for the polynomial of exp.
//
// `Float` is float or a vector of floats, `Word` the unsigned integer of its size, or a vector of them.

// |x|, but at most where E becomes 0. A NaN remains.
template <typename Word, typename Float>
LOCKSTEP_HOST_DEVICE inline Float gelu_magnitude(Float x) {
  constexpr float largest = 13.27F;
  const Float t = __builtin_bit_cast(Float, __builtin_bit_cast(Word, x) & 0x7FFFFFFFU);
  return t > largest ? largest : t;
}

// E for t from 0 to 13.27. Below 2^-126 it loses digits, and is 0 at the end.
template <typename Word, typename Float>
LOCKSTEP_HOST_DEVICE inline Float gelu_exponential(Float t) {
  // Additions of these leave multiples of 2^-8 and of 1.
  constexpr float round_to_256th = 0x1.8p15F;
  constexpr float round_to_whole = 0x1.8p23F;
  constexpr float half_log2_e = 0.721347520F;
  constexpr float two_ln2_high = 1.38671875F;  // its products with whole numbers up to 2^15 are exact
  constexpr float two_ln2_low = -4.2438888e-4F;
  // t * t = square + rest, where `square` is exact: the error of a rounded square would be that of the exponent.
  const Float high = (t + round_to_256th) - round_to_256th;
  const Float square = high * high;
  const Float rest = (t - high) * (t + high);
  // -t * t = n * 2 * ln(2) + r, so E = 2^n * exp(r / 2)
  const Float shifted = round_to_whole - half_log2_e * square;
  const Float n = shifted - round_to_whole;
  const Float r = ((-square - two_ln2_high * n) - two_ln2_low * n) - rest;
  const Float tail = (((2.1566594e-5F * r + 2.6170350e-4F) * r + 0.0026043122F) * r + 0.020833086F) * r + 0.12499997F;
  // The lowest bits of `shifted` are n.
  const Word bits = (__builtin_bit_cast(Word, shifted) << 23) + 0x3F800000U;
  return ((tail * r + 0.5F) * r + 1.0F) * __builtin_bit_cast(Float, bits);
}

template <typename Word, typename Float>
LOCKSTEP_HOST_DEVICE inline Float gelu_value(Float x) {
  const Float t = gelu_magnitude<Word>(x);
  const Float above = (((0.0040201886F * t + 0.03998416F) * t + 0.18130672F) * t + 0.43568627F) * t + 0.5F;
  const Float below =
      ((((0.010076975F * t + 0.1002328F) * t + 0.46438023F) * t + 1.1944841F) * t + 1.6692575F) * t + 1.0F;
  return (0.0F > x ? 0.0F : x) - gelu_exponential<Word>(t) * (t * (above / below));
}

// At the input x, because two inputs may have one value.
template <typename Word, typename Float>
LOCKSTEP_HOST_DEVICE inline Float gelu_derivative(Float x) {
  constexpr float zero_high = 0.75179154F;  // of h, with zero_low to more digits than fp32 has
  constexpr float zero_low = -1.21144495e-8F;
  const Float t = gelu_magnitude<Word>(x);
  const Float above = (((0.010224725F * t + 0.09434415F) * t + 0.3746512F) * t + 0.7501903F) * t + 0.665078F;
  const Float below = (((0.025629403F * t + 0.21722603F) * t + 0.7867851F) * t + 1.3935861F) * t + 1.0F;
  const Float h = gelu_exponential<Word>(t) * (((zero_high - t) + zero_low) * (above / below));
  return x > 0.0F ? 1.0F - h : h;
}
