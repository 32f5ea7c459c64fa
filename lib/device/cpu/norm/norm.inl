// Batch norm and bias. Included inside a namespace per instruction set, after vectors.inl.

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
void normalise_as(const Storage* x, const Storage* residual, Planes planes, const float* rows, Storage* y) {
  const NormVectors norm(rows);
  const auto finish = [](Floats z) { return activation == Activation::relu ? relu(z) : z; };
  if (residual == nullptr) {
    for_each_vector(planes, [=](std::int64_t at) { store(finish(norm.forward(load(x + at))), y + at); });
  } else {
    for_each_vector(planes,
                    [=](std::int64_t at) { store(finish(norm.forward(load(x + at)) + load(residual + at)), y + at); });
  }
}

template <typename Storage>
void normalise(const void* x_data, const void* residual_data, Planes planes, const float* rows, Activation activation,
               void* y_data) {
  const auto* x = static_cast<const Storage*>(x_data);
  const auto* residual = static_cast<const Storage*>(residual_data);
  auto* y = static_cast<Storage*>(y_data);
  if (activation == Activation::relu) {
    normalise_as<Storage, Activation::relu>(x, residual, planes, rows, y);
  } else {
    normalise_as<Storage, Activation::none>(x, residual, planes, rows, y);
  }
}

template <typename Storage, Gate gate>
void norm_sums_as(const Storage* x, const Storage* y, const Storage* dy, Planes planes, const float* rows, Storage* dz,
                  double* sums) {
  const NormVectors norm(rows);
  const auto gradient = [=](std::int64_t at, Floats value) {
    Floats dz_value = load(dy + at);
    if constexpr (gate == Gate::from_x) dz_value = behind_gate(norm.forward(value), dz_value);
    if constexpr (gate == Gate::from_y) dz_value = behind_gate(load(y + at), dz_value);
    return dz_value;
  };
  const auto add_up = [=](std::int64_t at, int part, auto& sum) {
    const Floats value = load(x + at);
    const Floats dz_value = gradient(at, value);
    sum[0][part] += dz_value;
    sum[1][part] += dz_value * (value - norm.mean);
    return dz_value;
  };
  if (dz == nullptr) {
    sum_over<2>(planes, sums, [=](std::int64_t at, int part, auto& sum) { add_up(at, part, sum); });
  } else {
    sum_over<2>(planes, sums, [=](std::int64_t at, int part, auto& sum) { store(add_up(at, part, sum), dz + at); });
  }
}

template <typename Storage>
void norm_sums(const void* x_data, const void* y_data, const void* dy_data, Planes planes, const float* rows, Gate gate,
               void* dz_data, double* sums) {
  const auto* x = static_cast<const Storage*>(x_data);
  const auto* y = static_cast<const Storage*>(y_data);
  const auto* dy = static_cast<const Storage*>(dy_data);
  auto* dz = static_cast<Storage*>(dz_data);
  switch (gate) {
    case Gate::open:
      return norm_sums_as<Storage, Gate::open>(x, y, dy, planes, rows, dz, sums);
    case Gate::from_x:
      return norm_sums_as<Storage, Gate::from_x>(x, y, dy, planes, rows, dz, sums);
    case Gate::from_y:
      return norm_sums_as<Storage, Gate::from_y>(x, y, dy, planes, rows, dz, sums);
  }
}

template <typename Storage>
void norm_gradient(const void* x_data, const void* dy_data, Planes planes, const float* rows, Gate gate,
                   void* dx_data) {
  const auto* x = static_cast<const Storage*>(x_data);
  const auto* dy = static_cast<const Storage*>(dy_data);
  auto* dx = static_cast<Storage*>(dx_data);
  const NormVectors norm(rows);
  if (gate == Gate::open) {
    for_each_vector(planes, [=](std::int64_t at) { store(norm.backward(load(x + at), load(dy + at)), dx + at); });
  } else {
    for_each_vector(planes, [=](std::int64_t at) {
      const Floats value = load(x + at);
      store(norm.backward(value, behind_gate(norm.forward(value), load(dy + at))), dx + at);
    });
  }
}

template <typename Storage>
void bias_gradient(const void* y_data, const void* dy_data, Planes planes, Activation activation, void* dx_data,
                   double* sums) {
  const auto* y = static_cast<const Storage*>(y_data);
  const auto* dy = static_cast<const Storage*>(dy_data);
  auto* dx = static_cast<Storage*>(dx_data);
  if (activation == Activation::relu) {
    sum_over<1>(planes, sums, [=](std::int64_t at, int part, auto& sum) {
      const Floats gradient = behind_gate(load(y + at), load(dy + at));
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
