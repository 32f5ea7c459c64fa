#include "device/cuda/cuda_layout.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "device/host_device.hpp"

namespace lockstep::cuda {
namespace {

// Calls visit(place in PyTorch's order, place in storage) for every weight of [out, in, kernel, kernel].
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

void write_element(const Tensor& tensor, std::int64_t place, float value) {
  switch (tensor.dtype()) {
    case DType::f32:
      tensor.as<float>()[place] = value;
      return;
    case DType::bf16:
      tensor.as<std::uint16_t>()[place] = to_bf16(value);
      return;
    case DType::f16:
      tensor.as<std::uint16_t>()[place] = to_f16(value);
      return;
    case DType::i64:
      tensor.as<std::int64_t>()[place] = static_cast<std::int64_t>(value);
      return;
    case DType::i32:
      tensor.as<std::int32_t>()[place] = static_cast<std::int32_t>(value);
      return;
    case DType::u8:
      tensor.as<std::uint8_t>()[place] = static_cast<std::uint8_t>(value);
      return;
  }
}

float read_element(const Tensor& tensor, std::int64_t place) {
  switch (tensor.dtype()) {
    case DType::f32:
      return tensor.as<float>()[place];
    case DType::bf16:
      return from_bf16(tensor.as<std::uint16_t>()[place]);
    case DType::f16:
      return from_f16(tensor.as<std::uint16_t>()[place]);
    case DType::i64:
      return static_cast<float>(tensor.as<std::int64_t>()[place]);
    case DType::i32:
      return static_cast<float>(tensor.as<std::int32_t>()[place]);
    case DType::u8:
      return static_cast<float>(tensor.as<std::uint8_t>()[place]);
  }
  return 0;
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
    write_element(staged, stored, values[static_cast<std::size_t>(place)]);
  });
}

void unpack_tensor(const Tensor& staged, std::span<float> values) {
  assert(static_cast<std::int64_t>(values.size()) == staged.shape().count());
  for_each_element(staged, [&](std::int64_t place, std::int64_t stored) {
    values[static_cast<std::size_t>(place)] = read_element(staged, stored);
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
