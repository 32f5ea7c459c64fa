#include "files/import/weight_bytes.hpp"

#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "device/host_device.hpp"
#include "files/tensor_file.hpp"

namespace lockstep {
namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

float float_of(std::string_view bytes, StoredFloat form) {
  const std::uint64_t bits = little_endian(bytes);
  switch (form) {
    case StoredFloat::f16:
      return from_f16(static_cast<std::uint16_t>(bits));
    case StoredFloat::bf16:
      return from_bf16(static_cast<std::uint16_t>(bits));
    case StoredFloat::f32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case StoredFloat::f64:
      return static_cast<float>(std::bit_cast<double>(bits));
  }
  return 0;
}

}  // namespace

void WeightBytes::refuse(const std::string& what) const {
  throw Error(Failure::bad_data, fmt::format("weights '{}' cannot be read: {}. Copy or convert them again: see "
                                             "apps/files.md, \"Weights from elsewhere\".",
                                             path_, what));
}

std::string_view WeightBytes::piece(std::uint64_t at, std::uint64_t size) const {
  if (at > bytes_.size() || size > bytes_.size() - at) {
    refuse(fmt::format("the file has {} bytes, but {} are expected at offset {}", bytes_.size(), size, at));
  }
  return bytes_.substr(at, size);
}

std::uint64_t WeightBytes::number(std::uint64_t at, std::uint64_t size) const { return little_endian(piece(at, size)); }

std::uint64_t WeightBytes::count_of(const std::string& name, std::span<const std::uint64_t> dims,
                                    std::uint64_t element_bytes) const {
  if (dims.size() > tensor_file_limits::dimensions) {
    refuse(fmt::format("'{}' has {} dimensions, more than {}", name, dims.size(), tensor_file_limits::dimensions));
  }
  std::uint64_t count = 1;
  for (const std::uint64_t size : dims) {
    if (size == 0) refuse(fmt::format("'{}' has a dimension of size 0", name));
    if (size > bytes_.size() / element_bytes / count) refuse(fmt::format("'{}' is larger than the file", name));
    count *= size;
  }
  return count;
}

ParameterStore::Entry WeightBytes::tensor(std::string name, std::span<const std::uint64_t> dims,
                                          std::string_view values, StoredFloat form) {
  ParameterStore::Entry entry{std::move(name), {dims.begin(), dims.end()}, {}};
  entry.values.resize(values.size() / size_of(form));
  if (form == StoredFloat::f32 && std::endian::native == std::endian::little) {
    std::memcpy(entry.values.data(), values.data(), values.size());
    return entry;
  }
  for (float& value : entry.values) {
    value = float_of(values.substr(0, size_of(form)), form);
    values.remove_prefix(size_of(form));
  }
  return entry;
}

bool is_counter(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);  // the whole name if it has no dot
  return last == "num_batches_tracked" || last == "n_averaged";
}

}  // namespace lockstep
