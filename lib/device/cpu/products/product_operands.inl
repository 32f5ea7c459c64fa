// Packing operands into the form that products read, and storing results. Layouts: ProductLoops in product_loops.hpp.
// Included in a namespace per instruction set, after products.inl, which its table refers to.

inline Floats normalized(Floats value, const BlockNorm& norm) {
  const Floats z = NormVectors(norm.rows).forward(value);
  return norm.activation == Activation::relu ? relu(z) : z;
}

template <typename Element>
inline Element* fill_zero(Element* packed, std::int64_t vectors, std::int64_t stride) {
  for (std::int64_t i = 0; i < vectors; ++i, packed += stride) store(zero, packed);
  return packed;
}

template <typename From, typename To>
void pack_plane(const void* x_data, const PlaneWindow& window, const BlockNorm& norm, float* words,
                std::int64_t column) {
  const std::int64_t first = window.first_inside;
  const std::int64_t last = window.last_inside;
  const std::int64_t stride = window.step.column * lanes;
  const std::int64_t packed_stride = column * values_of_word<To>;
  auto* packed = reinterpret_cast<To*>(words);
  for (std::int64_t r = 0; r < window.rows; ++r) {
    const std::int64_t row = window.first_row + r * window.step.row;
    if (row < 0 || row >= window.height || first == last) {
      packed = fill_zero(packed, window.columns, packed_stride);
      continue;
    }
    const std::int64_t pixel = row * window.width + window.first_column + first * window.step.column;
    const auto* x = static_cast<const From*>(x_data) + pixel * lanes;
    packed = fill_zero(packed, first, packed_stride);
    if (norm.rows == nullptr) {
      for (std::int64_t c = first; c < last; ++c, x += stride, packed += packed_stride) store(load(x), packed);
    } else {
      for (std::int64_t c = first; c < last; ++c, x += stride, packed += packed_stride)
        store(normalized(load(x), norm), packed);
    }
    packed = fill_zero(packed, window.columns - last, packed_stride);
  }
}

// Calls `take` with the pairs of images of a window's pixels, one vector after another.
template <typename Take>
inline void for_image_pairs(const ImagePlanes& planes, const PlaneWindow& window, const BlockNorm& norm, Take& take) {
  const std::int64_t whole_pairs = planes.images / 2;
  const std::int64_t stored_pairs = (planes.images + 1) / 2;
  const auto take_zeros = [&](std::int64_t pairs) {
    for (std::int64_t i = 0; i < pairs; ++i) take(zero);
  };
  const auto take_pixel = [&](const Bf16* x, const auto& value, const auto& pairs) {
    for (std::int64_t pair = 0; pair < whole_pairs; ++pair, x += 2 * planes.stride) {
      take(pairs(value(x), value(x + planes.stride)));
    }
    if (stored_pairs > whole_pairs) take(pairs(value(x), zero));
    take_zeros(planes.pairs - stored_pairs);
  };
  for (std::int64_t r = 0; r < window.rows; ++r) {
    const std::int64_t row = window.first_row + r * window.step.row;
    if (row < 0 || row >= window.height || window.first_inside == window.last_inside) {
      take_zeros(window.columns * planes.pairs);
      continue;
    }
    take_zeros(window.first_inside * planes.pairs);
    for (std::int64_t c = window.first_inside; c < window.last_inside; ++c) {
      const std::int64_t pixel = row * window.width + window.first_column + c * window.step.column;
      const auto* const x = static_cast<const Bf16*>(planes.first) + pixel * lanes;
      if (norm.rows == nullptr) {
        const auto words = [](Floats value) { return reinterpret_cast<Words>(value); };
        take_pixel(
            x, [](const Bf16* at) { return load(at); },
            [&](Floats low, Floats high) { return reinterpret_cast<Floats>((words(low) >> 16) | words(high)); });
      } else {
        take_pixel(
            x, [&](const Bf16* at) { return normalized(load(at), norm); }, pairs_of);
      }
    }
    take_zeros((window.columns - window.last_inside) * planes.pairs);
  }
}

void pack_image_pairs(const ImagePlanes& x, const PlaneWindow& window, const BlockNorm& norm, float* packed) {
  auto take = [&](Floats pairs) {
    store(pairs, packed);
    packed += lanes;
  };
  for_image_pairs(x, window, norm, take);
}

// Stores vectors as columns of planes[B], `plane` words apart. Writes whole vectors of a plane.
class IntoPlanes {
 public:
  IntoPlanes(float* planes, std::int64_t plane) : at_(planes), plane_(plane) {}

  void operator()(Floats column) {
    columns_[count_++] = column;
    if (count_ == lanes) write();
  }
  void write() {
    for (; count_ < lanes; ++count_) columns_[count_] = zero;
    transpose(columns_);
#pragma GCC unroll 16
    for (std::int64_t row = 0; row < lanes; ++row) store(columns_[row], at_ + row * plane_);
    at_ += lanes;
    count_ = 0;
  }
  bool is_complete() const { return count_ == 0; }

 private:
  float* at_;
  std::int64_t plane_;
  std::int64_t count_ = 0;
  Floats columns_[lanes];
};

void pack_image_pairs_by_channel(const ImagePlanes& x, const PlaneWindow& window, const BlockNorm& norm, float* packed,
                                 std::int64_t plane) {
  IntoPlanes take(packed, plane);
  for_image_pairs(x, window, norm, take);
  if (!take.is_complete()) take.write();
}

void pair_rows(const float* matrix, std::int64_t rows, float* pairs) {
  for (std::int64_t row = 0; row < rows; row += 2, pairs += lanes) {
    const float* const low = matrix + row * lanes;
    store(pairs_of(load(low), row + 1 < rows ? load(low + lanes) : zero), pairs);
  }
}

// The number of channels and the usual step are constants, so the compiler vectorizes the interleaving.
template <std::int64_t channels>
void pack_pixels(const float* image, std::int64_t plane, std::int64_t step, std::int64_t pixels, float* packed) {
  if (step == 1) {
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::int64_t c = 0; c < channels; ++c) packed[pixel * channels + c] = image[c * plane + pixel];
    }
  } else {
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::int64_t c = 0; c < channels; ++c) packed[pixel * channels + c] = image[c * plane + pixel * step];
    }
  }
}

template <std::int64_t channels>
void pack_planes(const float* image, const PlaneWindow& window, float* packed) {
  const std::int64_t plane = window.height * window.width;
  for (std::int64_t r = 0; r < window.rows; ++r, packed += window.columns * channels) {
    const std::int64_t row = window.first_row + r * window.step.row;
    const bool is_inside = row >= 0 && row < window.height && window.first_inside < window.last_inside;
    const std::int64_t first = is_inside ? window.first_inside : window.columns;
    const std::int64_t last = is_inside ? window.last_inside : window.columns;
    for (std::int64_t i = 0; i < first * channels; ++i) packed[i] = 0;
    for (std::int64_t i = last * channels; i < window.columns * channels; ++i) packed[i] = 0;
    if (!is_inside) continue;
    const float* const pixels = image + row * window.width + window.first_column + first * window.step.column;
    pack_pixels<channels>(pixels, plane, window.step.column, last - first, packed + first * channels);
  }
}

void pack_image(const float* image, std::int64_t channels, const PlaneWindow& window, float* packed) {
  if (channels == 1) pack_planes<1>(image, window, packed);
  if (channels == 2) pack_planes<2>(image, window, packed);
  if (channels == 3) pack_planes<3>(image, window, packed);
}

void narrow(const float* values, std::int64_t vectors, void* y_data) {
  auto* y = static_cast<Bf16*>(y_data);
  for (std::int64_t i = 0; i < vectors; ++i) store(load(values + i * lanes), y + i * lanes);
}

constexpr ProductLoops tables = {
    .lanes = lanes,
    .max_vectors = max_vectors,
    .tile_rows = tile_rows,
    .pair_tile_rows = pair_tile_rows,
    .steps_at_once = steps_at_once,
    .products = products,
    .pair_products = pair_products,
    .pack_f32 = pack_plane<F32, F32>,
    .pack_bf16 = pack_plane<Bf16, F32>,
    .pack_channel_pairs = pack_plane<Bf16, Bf16>,
    .pack_image_pairs = pack_image_pairs,
    .pack_image_pairs_by_channel = pack_image_pairs_by_channel,
    .pair_rows = pair_rows,
    .pack_image = pack_image,
    .narrow = narrow,
    .transpose = transpose,
};
