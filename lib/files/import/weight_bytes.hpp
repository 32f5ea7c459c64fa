// The bytes of a weights file that another program wrote. All reads are bounds-checked, and all formats share the same
// error messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/parameter_store.hpp"

namespace lockstep {

// How a file stores a value. All are little-endian.
enum class StoredFloat : std::uint8_t { f16, bf16, f32, f64 };

constexpr std::uint64_t size_of(StoredFloat form) {
  return form == StoredFloat::f64 ? 8 : form == StoredFloat::f32 ? 4 : 2;
}

class WeightBytes {
 public:
  // `path` is for messages; `bytes` must outlive this.
  WeightBytes(std::string path, std::string_view bytes) : path_(std::move(path)), bytes_(bytes) {}

  // Throws Error(bad_data): "weights '<path>' cannot be read: <what>. <what to try>".
  [[noreturn]] void refuse(const std::string& what) const;

  std::uint64_t size() const { return bytes_.size(); }
  // All throw as refuse() if the file is too short.
  std::string_view piece(std::uint64_t at, std::uint64_t size) const;
  std::uint64_t number(std::uint64_t at, std::uint64_t size) const;  // little-endian, 1 to 8 bytes
  bool starts(std::uint64_t at, std::string_view signature) const { return piece(at, signature.size()) == signature; }

  // The product of `dims`. Throws if it is 0, or if there are more dims than our tensors may have. Throws if a file of
  // this length cannot hold as many elements of `element_bytes`.
  std::uint64_t count_of(const std::string& name, std::span<const std::uint64_t> dims,
                         std::uint64_t element_bytes) const;
  // The tensor with the values in `values`, as fp32. float64 values are rounded.
  static ParameterStore::Entry tensor(std::string name, std::span<const std::uint64_t> dims, std::string_view values,
                                      StoredFloat form);

 private:
  std::string path_;
  std::string_view bytes_;
};

// Whether the name is that of an integer that PyTorch stores beside the weights: num_batches_tracked of a batch norm,
// or n_averaged of averaged weights. Lockstep does not use them.
bool is_counter(std::string_view name);

}  // namespace lockstep
