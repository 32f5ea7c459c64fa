#include "device/cuda/layout/cuda_layout.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "device/host_device.hpp"
#include "device/stored_value.hpp"

namespace lockstep::cuda {
namespace {

// Calls visit(index in PyTorch's order, index in storage) for every weight of [out, in, kernel rows, kernel columns].
template <typename Visit>
void for_each_weight(std::span<const std::int64_t> dims, Visit visit) {
  const std::int64_t window = dims[2] * dims[3];
  std::int64_t place = 0;
  for (std::int64_t o = 0; o < dims[0]; ++o) {
    for (std::int64_t i = 0; i < dims[1]; ++i) {
      for (std::int64_t k = 0; k < window; ++k) visit(place++, (o * window + k) * padded(dims[1]) + i);
    }
  }
}

template <typename Visit>
void for_each_element(const Tensor& tensor, Visit visit) {
  const Shape& shape = tensor.shape();
  const bool is_map = tensor.layout() != Layout::plain;
  assert(!is_map || shape.ndim == 4);
  const std::int64_t count = shape.count();
  const std::int64_t channels = is_map ? shape[3] : count;
  for (std::int64_t place = 0; place < count; ++place) {
    visit(place, is_map ? place / channels * padded(channels) + place % channels : place);
  }
}

}  // namespace

std::int64_t storage_count(const Shape& shape, Layout layout) {
  return layout == Layout::plain ? shape.count() : shape[0] * shape[1] * shape[2] * padded(shape[3]);
}

std::int64_t storage_count(ParameterKind kind, std::span<const std::int64_t> dims) {
  switch (kind) {
    case ParameterKind::conv_weight:
      return padded(dims[0]) * dims[2] * dims[3] * padded(dims[1]);
    case ParameterKind::linear_weight:
      return dims[0] * dims[1];
    case ParameterKind::channel_vector:
      return padded(dims[0]);
  }
  return 0;
}

void pack_tensor(std::span<const float> values, const Tensor& staged) {
  assert(static_cast<std::int64_t>(values.size()) == staged.shape().count());
  const std::int64_t bytes = storage_count(staged.shape(), staged.layout()) * size_of(staged.dtype());
  assert(bytes <= staged.bytes());
  std::memset(staged.data(), 0, static_cast<std::size_t>(bytes));
  for_each_element(staged, [&](std::int64_t place, std::int64_t stored) {
    write_value(staged, stored, values[static_cast<std::size_t>(place)]);
  });
}

void unpack_tensor(const Tensor& staged, std::span<float> values) {
  assert(static_cast<std::int64_t>(values.size()) == staged.shape().count());
  for_each_element(staged, [&](std::int64_t place, std::int64_t stored) {
    values[static_cast<std::size_t>(place)] = read_value(staged, stored);
  });
}

void pack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
                    std::span<float> staged) {
  assert(static_cast<std::int64_t>(staged.size()) == storage_count(kind, dims) && values.size() <= staged.size());
  std::ranges::fill(staged, 0.0F);
  if (kind != ParameterKind::conv_weight) {
    std::ranges::copy(values, staged.begin());
    return;
  }
  for_each_weight(dims, [&](std::int64_t place, std::int64_t stored) {
    staged[static_cast<std::size_t>(stored)] = values[static_cast<std::size_t>(place)];
  });
}

void unpack_parameter(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> staged,
                      std::span<float> values) {
  assert(static_cast<std::int64_t>(staged.size()) == storage_count(kind, dims) && values.size() <= staged.size());
  if (kind != ParameterKind::conv_weight) {
    std::ranges::copy(staged.first(values.size()), values.begin());
    return;
  }
  for_each_weight(dims, [&](std::int64_t place, std::int64_t stored) {
    values[static_cast<std::size_t>(place)] = staged[static_cast<std::size_t>(stored)];
  });
}

void narrow(std::span<const float> values, DType dtype, std::span<std::uint16_t> narrowed) {
  assert(values.size() == narrowed.size() && (dtype == DType::f16 || dtype == DType::bf16));
  std::ranges::transform(values, narrowed.begin(), dtype == DType::f16 ? to_f16 : to_bf16);
}

}  // namespace lockstep::cuda
