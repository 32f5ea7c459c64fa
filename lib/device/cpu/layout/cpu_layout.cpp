#include "device/cpu/layout/cpu_layout.hpp"

#include <cassert>
#include <cstring>

#include "device/stored_value.hpp"

namespace lockstep::cpu {
namespace {

// Calls visit(index in PyTorch's order, index in storage) for every weight of [out, in, kernel rows, kernel columns].
template <typename Visit>
void for_each_weight(std::span<const std::int64_t> dims, int lanes, Visit visit) {
  const std::int64_t in = dims[1];
  const bool is_first = in <= max_image_channels;
  const std::int64_t rows = is_first ? in : lanes;  // input channels per block
  const std::int64_t in_blocks = (in + rows - 1) / rows;
  const std::int64_t window = dims[2] * dims[3];
  std::int64_t place = 0;
  for (std::int64_t o = 0; o < dims[0]; ++o) {
    for (std::int64_t i = 0; i < in; ++i) {
      for (std::int64_t k = 0; k < window; ++k) {
        const std::int64_t block = (o / lanes * in_blocks + i / rows) * window + k;
        visit(place++, (block * rows + i % rows) * lanes + o % lanes);
      }
    }
  }
}

// Calls visit(index in [n, h, w, c], index in storage) for every element.
template <typename Visit>
void for_each_pixel(const Shape& shape, Layout layout, int lanes, Visit visit) {
  assert(shape.ndim == 4);
  const std::int64_t pixels = shape[1] * shape[2];
  const std::int64_t channels = shape[3];
  const std::int64_t lane_count = layout == Layout::images ? 1 : lanes;
  const std::int64_t blocks = (channels + lane_count - 1) / lane_count;
  std::int64_t place = 0;
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::int64_t c = 0; c < channels; ++c) {
        visit(place++, ((n * blocks + c / lane_count) * pixels + pixel) * lane_count + c % lane_count);
      }
    }
  }
}

template <typename Visit>
void for_each_element(const Tensor& tensor, int lanes, Visit visit) {
  if (tensor.layout() != Layout::plain) {
    for_each_pixel(tensor.shape(), tensor.layout(), lanes, visit);
    return;
  }
  for (std::int64_t place = 0; place < tensor.shape().count(); ++place) visit(place, place);
}

}  // namespace

std::int64_t storage_count(const Shape& shape, Layout layout, int lanes) {
  if (layout != Layout::features) return shape.count();
  return shape[0] * shape[1] * shape[2] * whole_blocks(shape[3], lanes);
}

std::int64_t storage_count(ParameterKind kind, std::span<const std::int64_t> dims, int lanes) {
  switch (kind) {
    case ParameterKind::conv_weight: {
      const std::int64_t in = dims[1] <= max_image_channels ? dims[1] : whole_blocks(dims[1], lanes);
      return whole_blocks(dims[0], lanes) * in * dims[2] * dims[3];
    }
    case ParameterKind::linear_weight:
      return dims[0] * dims[1];
    case ParameterKind::channel_vector:
      return dims[0];
  }
  return 0;
}

void pack_tensor(std::span<const float> values, const Tensor& tensor, int lanes) {
  assert(static_cast<std::int64_t>(values.size()) == tensor.shape().count());
  const std::int64_t bytes = storage_count(tensor.shape(), tensor.layout(), lanes) * size_of(tensor.dtype());
  assert(bytes <= tensor.bytes());
  std::memset(tensor.data(), 0, static_cast<std::size_t>(bytes));
  for_each_element(tensor, lanes, [&](std::int64_t place, std::int64_t stored) {
    write_value(tensor, stored, values[static_cast<std::size_t>(place)]);
  });
}

void unpack_tensor(const Tensor& tensor, std::span<float> values, int lanes) {
  assert(static_cast<std::int64_t>(values.size()) == tensor.shape().count());
  for_each_element(tensor, lanes, [&](std::int64_t place, std::int64_t stored) {
    values[static_cast<std::size_t>(place)] = read_value(tensor, stored);
  });
}

void pack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
                    std::span<float> stored, int lanes) {
  if (kind != ParameterKind::conv_weight) {
    assert(values.size() == stored.size());
    std::memcpy(stored.data(), values.data(), values.size_bytes());
    return;
  }
  std::memset(stored.data(), 0, stored.size_bytes());
  for_each_weight(dims, lanes, [&](std::int64_t place, std::int64_t where) {
    stored[static_cast<std::size_t>(where)] = values[static_cast<std::size_t>(place)];
  });
}

void unpack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> stored,
                      std::span<float> values, int lanes) {
  if (kind != ParameterKind::conv_weight) {
    assert(values.size() == stored.size());
    std::memcpy(values.data(), stored.data(), values.size_bytes());
    return;
  }
  for_each_weight(dims, lanes, [&](std::int64_t place, std::int64_t where) {
    values[static_cast<std::size_t>(place)] = stored[static_cast<std::size_t>(where)];
  });
}

}  // namespace lockstep::cpu
