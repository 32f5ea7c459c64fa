// Loops of batch norm and bias over one channel block. Forward: z = factor * x + offset. Backward: dx = factor * ((dz -
// mean_dz) + x_factor * (x - mean)), with the rows of NormRow (vector_loops.hpp). Sums are taken in the pass that
// stores the values. Included in a namespace per instruction set, after activation_gradient.inl.

template <typename Storage>
void moments(const void* x_data, Planes planes, const float* shift, double* sums) {
  const auto* x = static_cast<const Storage*>(x_data);
  const Floats origin = load(shift);
  sum_over<2>(planes, sums, [=](std::int64_t at, int part, auto& sum) {
    const Floats value = load(x + at) - origin;
    sum[0][part] += value;
    sum[1][part] += value * value;
  });
}

template <typename Storage, Activation activation>
void normalize_as(const Storage* x, const Storage* residual, Planes planes, const float* rows, Storage* y) {
  const NormVectors norm(rows);
  const auto finish = [](Floats z) {
    if constexpr (activation == Activation::gelu) return gelu_value<Words>(z);  // 0 at 0: padding channels stay zero
    return activation == Activation::relu ? relu(z) : z;
  };
  if (residual == nullptr) {
    for_each_vector(planes, [=](std::int64_t at) { store(finish(norm.forward(load(x + at))), y + at); });
  } else {
    for_each_vector(planes,
                    [=](std::int64_t at) { store(finish(norm.forward(load(x + at)) + load(residual + at)), y + at); });
  }
}

template <typename Storage>
void normalize(const void* x_data, const void* residual_data, Planes planes, const float* rows, Activation activation,
               void* y_data) {
  const auto* x = static_cast<const Storage*>(x_data);
  const auto* residual = static_cast<const Storage*>(residual_data);
  auto* y = static_cast<Storage*>(y_data);
  switch (activation) {
    case Activation::none:
      return normalize_as<Storage, Activation::none>(x, residual, planes, rows, y);
    case Activation::relu:
      return normalize_as<Storage, Activation::relu>(x, residual, planes, rows, y);
    case Activation::gelu:
      return normalize_as<Storage, Activation::gelu>(x, residual, planes, rows, y);
  }
}

template <typename Storage>
void store_with_moments(const float* values, std::int64_t values_stride, Planes planes, void* y_data, double* sums) {
  auto* y = static_cast<Storage*>(y_data);
  sum_over_images<2>(planes.images, planes.pixels, sums, [=](std::int64_t image, std::int64_t at, int part, auto& sum) {
    const Floats value = load(values + image * values_stride + at);
    sum[0][part] += value;
    sum[1][part] += value * value;
    store(value, y + image * planes.stride + at);
  });
}

// dz from dy, and its contribution to a norm's two sums.
template <typename Storage, ActivationGradient activation>
struct NormSums {
  NormSums(const Storage* norm_x, const Storage* activated, const float* rows)
      : norm(rows), x(norm_x), y(activated) {}

  template <typename Sum>
  Floats operator()(Floats dy, std::int64_t at, int part, Sum& sum) const {
    const Floats value = load(x + at);
    const Floats dz = gradient_before<activation>(norm, value, y, at, dy);
    sum[0][part] += dz;
    sum[1][part] += dz * (value - norm.mean);
    return dz;
  }

  NormVectors norm;
  const Storage* x;
  const Storage* y;
};

template <typename Storage>
void store_with_norm_sums(const float* values, std::int64_t values_stride, const void* x, const void* y, Planes planes,
                          const float* rows, ActivationGradient activation, void* dz_data, double* sums) {
  auto* dz = static_cast<Storage*>(dz_data);
  for_activation(activation, [=]<ActivationGradient form>() {
    const NormSums<Storage, form> add(static_cast<const Storage*>(x), static_cast<const Storage*>(y), rows);
    sum_over_images<2>(planes.images, planes.pixels, sums,
                       [=](std::int64_t image, std::int64_t at, int part, auto& sum) {
                         const std::int64_t place = image * planes.stride + at;
                         store(add(load(values + image * values_stride + at), place, part, sum), dz + place);
                       });
  });
}

template <typename Storage>
void norm_sums(const void* x, const void* y, const void* dy_data, Planes planes, const float* rows,
               ActivationGradient activation, void* dz_data, double* sums) {
  const auto* dy = static_cast<const Storage*>(dy_data);
  auto* dz = static_cast<Storage*>(dz_data);
  for_activation(activation, [=]<ActivationGradient form>() {
    const NormSums<Storage, form> add(static_cast<const Storage*>(x), static_cast<const Storage*>(y), rows);
    if (dz == nullptr) {
      sum_over<2>(planes, sums, [=](std::int64_t at, int part, auto& sum) { add(load(dy + at), at, part, sum); });
    } else {
      sum_over<2>(planes, sums,
                  [=](std::int64_t at, int part, auto& sum) { store(add(load(dy + at), at, part, sum), dz + at); });
    }
  });
}

template <typename Storage>
void norm_gradient(const void* x_data, const void* dy_data, Planes planes, const float* rows,
                   ActivationGradient activation, void* dx_data) {
  const auto* x = static_cast<const Storage*>(x_data);
  const auto* dy = static_cast<const Storage*>(dy_data);
  auto* dx = static_cast<Storage*>(dx_data);
  const NormVectors norm(rows);
  for_activation(activation, [=]<ActivationGradient form>() {
    for_each_vector(planes, [=](std::int64_t at) {
      const Floats value = load(x + at);
      const Floats dz = gradient_before<form, Storage>(norm, value, nullptr, 0, load(dy + at));
      store(norm.backward(value, dz), dx + at);
    });
  });
}

template <typename Storage>
void bias_gradient(const void* y_data, const void* dy_data, Planes planes, Activation activation, void* dx_data,
                   double* sums) {
  const auto* y = static_cast<const Storage*>(y_data);
  const auto* dy = static_cast<const Storage*>(dy_data);
  auto* dx = static_cast<Storage*>(dx_data);
  if (activation == Activation::relu) {
    sum_over<1>(planes, sums, [=](std::int64_t at, int part, auto& sum) {
      const Floats gradient = masked_gradient(load(y + at), load(dy + at));
      sum[0][part] += gradient;
      store(gradient, dx + at);
    });
  } else {
    sum_over<1>(planes, sums, [=](std::int64_t at, int part, auto& sum) {
      const Floats gradient = load(dy + at);
      sum[0][part] += gradient;
      store(gradient, dx + at);
    });
  }
}
