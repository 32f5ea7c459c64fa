// Loops of pooling, blur, reshaping copies and addition over one channel block, and the tables of all passes. Layouts
// and functions: vector_loops.hpp. Included in a namespace per instruction set, after norm.inl.

template <typename Storage>
void max_pool(const void* x_data, const PoolPlane& plane, void* y_data, std::uint8_t* winner) {
  const auto* x = static_cast<const Storage*>(x_data);
  auto* y = static_cast<Storage*>(y_data);
  const Pool2d& pool = plane.pool;
  for (std::int64_t out_row = 0; out_row < plane.out_height; ++out_row) {
    for (std::int64_t out_column = 0; out_column < plane.out_width; ++out_column) {
      Floats largest = zero - __builtin_inff();
      Words place = {};
      bool first = true;
      for (std::int64_t i = 0; i < pool.kernel; ++i) {
        const std::int64_t row = out_row * pool.stride - pool.padding + i;
        if (row < 0 || row >= plane.height) continue;
        for (std::int64_t j = 0; j < pool.kernel; ++j) {
          const std::int64_t column = out_column * pool.stride - pool.padding + j;
          if (column < 0 || column >= plane.width) continue;
          const Floats value = load(x + (row * plane.width + column) * lanes);
          const Words here = Words{} + static_cast<std::uint32_t>(i * pool.kernel + j);
          // The first value always replaces the initial one, even if it is minus infinity or NaN. NaN wins over all
          // later values.
          const auto larger = first ? here >= 0U : (value > largest) | (value != value);
          largest = larger ? value : largest;
          place = larger ? here : place;
          first = false;
        }
      }
      const std::int64_t out = (out_row * plane.out_width + out_column) * lanes;
      store(largest, y + out);
      store_bytes<lanes>(place, winner + out);
    }
  }
}

// Sets the pixels from `first_row` on, and those from `first_column` on, to zero.
template <typename Storage>
void clear_beyond(std::int64_t first_row, std::int64_t first_column, const PoolPlane& plane, Storage* dx) {
  for (std::int64_t row = 0; row < plane.height; ++row) {
    for (std::int64_t column = row < first_row ? first_column : 0; column < plane.width; ++column) {
      store(zero, dx + (row * plane.width + column) * lanes);
    }
  }
}

// Where windows lie side by side, each input pixel is in one of them, or in none.
template <typename Storage, typename Share>
void take_from_window(const PoolPlane& plane, Storage* dx, Share share) {
  const std::int64_t kernel = plane.pool.kernel;
  const auto end = [=](std::int64_t begin, std::int64_t size) { return begin + kernel < size ? begin + kernel : size; };
  for (std::int64_t out_row = 0; out_row < plane.out_height; ++out_row) {
    for (std::int64_t out_column = 0; out_column < plane.out_width; ++out_column) {
      for (std::int64_t row = out_row * kernel; row < end(out_row * kernel, plane.height); ++row) {
        for (std::int64_t column = out_column * kernel; column < end(out_column * kernel, plane.width); ++column) {
          store(zero + share(row, column, out_row, out_column), dx + (row * plane.width + column) * lanes);
        }
      }
    }
  }
  clear_beyond(plane.out_height * kernel, plane.out_width * kernel, plane, dx);
}

// Gathers: each input pixel sums, in fp32, what share(row, column, row and column of a window) gives for all windows
// over it, and is written once.
template <typename Storage, typename Share>
void gather_from_windows(const PoolPlane& plane, Storage* dx, Share share) {
  const Pool2d& pool = plane.pool;
  if (pool.stride == pool.kernel && pool.padding == 0) return take_from_window(plane, dx, share);
  for (std::int64_t row = 0; row < plane.height; ++row) {
    const std::int64_t last_row = last_window_over(pool, row, plane.out_height);
    for (std::int64_t column = 0; column < plane.width; ++column) {
      Floats sum = zero;
      const std::int64_t last_column = last_window_over(pool, column, plane.out_width);
      for (std::int64_t out_row = first_window_over(pool, row); out_row <= last_row; ++out_row) {
        for (std::int64_t out_column = first_window_over(pool, column); out_column <= last_column; ++out_column) {
          sum += share(row, column, out_row, out_column);
        }
      }
      store(sum, dx + (row * plane.width + column) * lanes);
    }
  }
}

template <typename Storage>
void max_pool_gradient(const void* dy_data, const std::uint8_t* winner, const PoolPlane& plane, void* dx_data) {
  const auto* dy = static_cast<const Storage*>(dy_data);
  const Pool2d pool = plane.pool;
  const std::int64_t out_width = plane.out_width;
  gather_from_windows(plane, static_cast<Storage*>(dx_data),
                      [=](std::int64_t row, std::int64_t column, std::int64_t out_row, std::int64_t out_column) {
                        const std::int64_t i = row + pool.padding - out_row * pool.stride;
                        const std::int64_t j = column + pool.padding - out_column * pool.stride;
                        const std::int64_t out = (out_row * out_width + out_column) * lanes;
                        return load_bytes<lanes>(winner + out) == static_cast<std::uint32_t>(i * pool.kernel + j)
                                   ? load(dy + out)
                                   : zero;
                      });
}

inline float mean_factor(const PoolPlane& plane, bool counts_padding, std::int64_t out_row, std::int64_t out_column) {
  const std::int64_t rows = counted_positions(plane.pool, counts_padding, out_row, plane.height);
  return 1.0F / static_cast<float>(rows * counted_positions(plane.pool, counts_padding, out_column, plane.width));
}

template <typename Storage>
void average_pool(const void* x_data, const PoolPlane& plane, bool counts_padding, void* y_data) {
  const auto* x = static_cast<const Storage*>(x_data);
  auto* y = static_cast<Storage*>(y_data);
  const Pool2d& pool = plane.pool;
  const auto clamped = [](std::int64_t at, std::int64_t size) { return at < 0 ? 0 : at < size ? at : size; };
  for (std::int64_t out_row = 0; out_row < plane.out_height; ++out_row) {
    const std::int64_t top = out_row * pool.stride - pool.padding;
    for (std::int64_t out_column = 0; out_column < plane.out_width; ++out_column, y += lanes) {
      const std::int64_t left = out_column * pool.stride - pool.padding;
      Floats sum = zero;
      for (std::int64_t row = clamped(top, plane.height); row < clamped(top + pool.kernel, plane.height); ++row) {
        for (std::int64_t at = clamped(left, plane.width); at < clamped(left + pool.kernel, plane.width); ++at) {
          sum += load(x + (row * plane.width + at) * lanes);
        }
      }
      store(mean_factor(plane, counts_padding, out_row, out_column) * sum, y);
    }
  }
}

template <typename Storage>
void average_pool_gradient(const void* dy_data, const PoolPlane& plane, bool counts_padding, void* dx_data) {
  const auto* dy = static_cast<const Storage*>(dy_data);
  gather_from_windows(plane, static_cast<Storage*>(dx_data),
                      [=](std::int64_t, std::int64_t, std::int64_t out_row, std::int64_t out_column) {
                        return mean_factor(plane, counts_padding, out_row, out_column) *
                               load(dy + (out_row * plane.out_width + out_column) * lanes);
                      });
}

// Sums each column of three pixels first, and uses the sum for three output pixels. All factors are powers of two, so
// products are exact.
template <typename Storage, std::int64_t from_stride, std::int64_t to_stride>
void blur_plane(const Storage* x, std::int64_t height, std::int64_t width, Storage* y) {
  const std::int64_t given_width = (width + from_stride - 1) / from_stride;
  const auto given_row = [&](std::int64_t row) -> const Storage* {
    if (row < 0 || row >= height || row % from_stride != 0) return nullptr;
    return x + row / from_stride * given_width * lanes;
  };
  for (std::int64_t row = 0; row < height; row += to_stride) {
    const Storage* const above = given_row(row - 1);
    const Storage* const middle = given_row(row);
    const Storage* const below = given_row(row + 1);
    const auto down_column = [&](std::int64_t column) {
      if (column >= width || column % from_stride != 0) return zero;
      const std::int64_t at = column / from_stride * lanes;
      Floats sum = middle == nullptr ? zero : 2.0F * load(middle + at);
      if (above != nullptr) sum += load(above + at);
      if (below != nullptr) sum += load(below + at);
      return sum;
    };
    Floats left = zero;
    Floats here = down_column(0);
    for (std::int64_t column = 0; column < width; ++column) {
      const Floats right = down_column(column + 1);
      if (column % to_stride == 0) {
        store(0.0625F * (2.0F * here + left + right), y);
        y += lanes;
      }
      left = here;
      here = right;
    }
  }
}

template <typename Storage>
void blur(const void* x_data, const BlurPlane& plane, void* y_data) {
  const auto* x = static_cast<const Storage*>(x_data);
  auto* y = static_cast<Storage*>(y_data);
  if (plane.from_stride == 2) {
    blur_plane<Storage, 2, 1>(x, plane.height, plane.width, y);
  } else if (plane.to_stride == 2) {
    blur_plane<Storage, 1, 2>(x, plane.height, plane.width, y);
  } else {
    blur_plane<Storage, 1, 1>(x, plane.height, plane.width, y);
  }
}

template <typename Storage>
void sum_pixels(const void* x_data, std::int64_t pixels, double* sums) {
  const auto* x = static_cast<const Storage*>(x_data);
  sum_over<1>({1, pixels, 0}, sums, [=](std::int64_t at, int part, auto& sum) { sum[0][part] += load(x + at); });
}

template <typename Storage>
void fill_pixels(const float* row, std::int64_t pixels, void* y_data) {
  auto* y = static_cast<Storage*>(y_data);
  const Floats value = load(row);
  for_each_vector({1, pixels, 0}, [=](std::int64_t at) { store(value, y + at); });
}

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
void add(const void* a_data, const void* b_data, std::int64_t vectors, void* y_data) {
  const auto* a = static_cast<const Storage*>(a_data);
  const auto* b = static_cast<const Storage*>(b_data);
  auto* y = static_cast<Storage*>(y_data);
  for_each_vector({1, vectors, 0}, [=](std::int64_t at) { store(load(a + at) + load(b + at), y + at); });
}

template <typename Storage>
void activate(const Curve& curve, const void* x_data, std::int64_t pixels, std::int64_t channels, void* y_data) {
  const auto* x = static_cast<const Storage*>(x_data);
  auto* y = static_cast<Storage*>(y_data);
  if (curve.kind == Curve::Kind::relu) {
    for_each_vector({1, pixels, 0}, [=](std::int64_t at) { store(relu(load(x + at)), y + at); });
    return;
  }
  if (curve.kind == Curve::Kind::gelu) {  // 0 at 0, so padding channels stay zero
    for_each_vector({1, pixels, 0}, [=](std::int64_t at) { store(gelu_value<Words>(load(x + at)), y + at); });
    return;
  }
  for_each_vector({1, pixels, 0}, [=](std::int64_t at) {
    Floats values = load(x + at);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      values[lane] = lane < channels ? curve_value(curve, values[lane]) : 0;
    }
    store(values, y + at);
  });
}

template <typename Storage>
void activate_gradient(const Curve& curve, const void* saved_data, const void* dy_data, std::int64_t pixels,
                       void* dx_data) {
  const auto* saved = static_cast<const Storage*>(saved_data);
  const auto* dy = static_cast<const Storage*>(dy_data);
  auto* dx = static_cast<Storage*>(dx_data);
  if (curve.kind == Curve::Kind::relu) {
    for_each_vector({1, pixels, 0},
                    [=](std::int64_t at) { store(masked_gradient(load(saved + at), load(dy + at)), dx + at); });
    return;
  }
  if (curve.kind == Curve::Kind::gelu) {
    for_each_vector({1, pixels, 0},
                    [=](std::int64_t at) { store(load(dy + at) * gelu_derivative<Words>(load(saved + at)), dx + at); });
    return;
  }
  for_each_vector({1, pixels, 0}, [=](std::int64_t at) {
    const Floats kept = load(saved + at);
    Floats values = load(dy + at);
    for (std::int64_t lane = 0; lane < lanes; ++lane) values[lane] *= curve_derivative(curve, kept[lane]);
    store(values, dx + at);
  });
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

// Sixteen interleaved sums for any vector width, so every instruction set adds in the same order. The product of two
// floats is exact in double.
double sum_of_squares(const float* values, std::int64_t count) {
  constexpr std::int64_t ways = 16;
  double sums[ways] = {};
  std::int64_t i = 0;
  for (; i + ways <= count; i += ways) {
    for (std::int64_t way = 0; way < ways; ++way) {
      const auto value = static_cast<double>(values[i + way]);
      sums[way] += value * value;
    }
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < count; ++i) total += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return total;
}

template <typename Storage>
constexpr VectorLoops table = {
    .lanes = lanes,
    .moments = moments<Storage>,
    .normalize = normalize<Storage>,
    .norm_sums = norm_sums<Storage>,
    .store_with_moments = store_with_moments<Storage>,
    .store_with_norm_sums = store_with_norm_sums<Storage>,
    .norm_gradient = norm_gradient<Storage>,
    .bias_gradient = bias_gradient<Storage>,
    .max_pool = max_pool<Storage>,
    .max_pool_gradient = max_pool_gradient<Storage>,
    .average_pool = average_pool<Storage>,
    .average_pool_gradient = average_pool_gradient<Storage>,
    .blur = blur<Storage>,
    .sum_pixels = sum_pixels<Storage>,
    .fill_pixels = fill_pixels<Storage>,
    .subsample = subsample<Storage>,
    .subsample_gradient = subsample_gradient<Storage>,
    .add = add<Storage>,
    .activate = activate<Storage>,
    .activate_gradient = activate_gradient<Storage>,
    .unpack = unpack<Storage>,
    .pack = pack<Storage>,
    .sum_of_squares = sum_of_squares,
};

constexpr VectorTables tables = {table<F32>, table<Bf16>};
