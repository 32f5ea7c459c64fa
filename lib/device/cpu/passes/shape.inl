// Copies that change the shape, and the sum of two feature maps. Included inside a namespace per instruction set, after
// vectors.inl.

template <typename Storage>
void subsample(const void* x_data, std::int64_t height, std::int64_t width, std::int64_t stride, void* y_data) {
  const auto* x = static_cast<const Storage*>(x_data);
  auto* y = static_cast<Storage*>(y_data);
  for (std::int64_t row = 0; row < height; row += stride) {
    for (std::int64_t column = 0; column < width; column += stride, y += lanes) {
      store(load(x + (row * width + column) * lanes), y);
    }
  }
}

template <typename Storage>
void subsample_gradient(const void* dy_data, std::int64_t height, std::int64_t width, std::int64_t channels,
                        std::int64_t stride, void* dx_data) {
  const auto* dy = static_cast<const Storage*>(dy_data);
  auto* dx = static_cast<Storage*>(dx_data);
  Words kept = {};
  for (std::int64_t channel = 0; channel < channels; ++channel) kept[channel] = 1;
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t column = 0; column < width; ++column, dx += lanes) {
      const bool taken = row % stride == 0 && column % stride == 0;
      Floats gradient = zero;
      if (taken) {
        gradient = kept != 0U ? load(dy) : zero;
        dy += lanes;
      }
      store(gradient, dx);
    }
  }
}

template <typename Storage>
void add(const void* other_data, std::int64_t vectors, void* sum_data) {
  const auto* other = static_cast<const Storage*>(other_data);
  auto* sum = static_cast<Storage*>(sum_data);
  for_each_vector({1, vectors, 0}, [=](std::int64_t at) { store(load(sum + at) + load(other + at), sum + at); });
}

template <typename Storage>
void unpack(const void* x_data, std::int64_t pixels, std::int64_t channels, std::int64_t pixel_stride,
            std::int64_t channel_stride, float* values) {
  const auto* x = static_cast<const Storage*>(x_data);
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    const Floats vector = load(x + pixel * lanes);
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      values[pixel * pixel_stride + channel * channel_stride] = vector[channel];
    }
  }
}

template <typename Storage>
void pack(const float* values, std::int64_t pixels, std::int64_t channels, std::int64_t pixel_stride,
          std::int64_t channel_stride, void* x_data) {
  auto* x = static_cast<Storage*>(x_data);
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    Floats vector = zero;
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      vector[channel] = values[pixel * pixel_stride + channel * channel_stride];
    }
    store(vector, x + pixel * lanes);
  }
}
