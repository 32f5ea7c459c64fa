// The gradient dz of a norm's output from the gradient dy of the activation that follows it, as dy is read or computed.
// Included in a namespace per instruction set, after vectors.inl and ../gelu.inl.

// `x`: the norm's input. `y`: of the activation, for relu_of_y.
template <ActivationGradient activation, typename Storage>
inline Floats gradient_before(const NormVectors& norm, Floats x, const Storage* y, std::int64_t at, Floats dy) {
  if constexpr (activation == ActivationGradient::relu_of_x) return masked_gradient(norm.forward(x), dy);
  if constexpr (activation == ActivationGradient::relu_of_y) return masked_gradient(load(y + at), dy);
  if constexpr (activation == ActivationGradient::gelu_of_x) return dy * gelu_derivative<Words>(norm.forward(x));
  return dy;
}

// Calls act.operator()<activation>(), so that loops are compiled for each.
template <typename Act>
inline void for_activation(ActivationGradient activation, const Act& act) {
  switch (activation) {
    case ActivationGradient::pass:
      return act.template operator()<ActivationGradient::pass>();
    case ActivationGradient::relu_of_x:
      return act.template operator()<ActivationGradient::relu_of_x>();
    case ActivationGradient::relu_of_y:
      return act.template operator()<ActivationGradient::relu_of_y>();
    case ActivationGradient::gelu_of_x:
      return act.template operator()<ActivationGradient::gelu_of_x>();
  }
}
