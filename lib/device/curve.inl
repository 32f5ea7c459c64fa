// Values and derivatives of elementwise functions, the same on every device. NaN passes all of them. Included in
// namespace lockstep (curve.hpp) and in the namespace of each instruction set.

#include "device/gelu.inl"

LOCKSTEP_HOST_DEVICE inline float curve_value(const Curve& curve, float x) {
  switch (curve.kind) {
    case Curve::Kind::relu:
      return 0 > x ? 0 : x;
    case Curve::Kind::leaky_relu:
      return 0 > x ? curve.slope * x : x;
    case Curve::Kind::clip:
      return curve.low > x ? curve.low : x > curve.high ? curve.high : x;
    case Curve::Kind::sigmoid:
      return 1 / (1 + ::expf(-x));
    case Curve::Kind::tanh:
      return ::tanhf(x);
    case Curve::Kind::gelu:
      return gelu_value<std::uint32_t>(x);
    case Curve::Kind::linear:
      return curve.slope * x + curve.shift;
  }
  return x;
}

// `saved`: y = curve_value(curve, x), but x for gelu (saved_for_backward). Where two derivatives meet, that of the left
// side for relu and leaky_relu and 0 for clip, as in PyTorch.
LOCKSTEP_HOST_DEVICE inline float curve_derivative(const Curve& curve, float saved) {
  const float y = saved;
  switch (curve.kind) {
    case Curve::Kind::relu:
      return y <= 0 ? 0 : 1;
    case Curve::Kind::leaky_relu:
      return y <= 0 ? curve.slope : 1;
    case Curve::Kind::clip:
      return y <= curve.low || y >= curve.high ? 0 : 1;
    case Curve::Kind::sigmoid:
      return y * (1 - y);
    case Curve::Kind::tanh:
      return 1 - y * y;
    case Curve::Kind::gelu:
      return gelu_derivative<std::uint32_t>(saved);
    case Curve::Kind::linear:
      return curve.slope;
  }
  return 1;
}
