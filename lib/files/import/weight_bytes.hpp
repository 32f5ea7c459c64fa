// The bytes of a file of weights that another program wrote: nothing outside them can be read, and what is wrong with
// them is said in the same words for every format.
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
  // `path` is for messages; `bytes` outlive this.
  WeightBytes(std::string path, std::string_view bytes) : path_(std::move(path)), bytes_(bytes) {}

  // Throws Error(bad_data): "weights '<path>' cannot be read: <what>. <what to try>".
  [[noreturn]] void refuse(const std::string& what) const;

  std::uint64_t size() const { return bytes_.size(); }
  // Each throws as refuse() where the file is too short for it.
  std::string_view piece(std::uint64_t at, std::uint64_t size) const;
  std::uint64_t number(std::uint64_t at, std::uint64_t size) const;  // little-endian, of 1 to 8 bytes
  bool starts(std::uint64_t at, std::string_view signature) const { return piece(at, signature.size()) == signature; }

  // The product of `dims`. Throws unless it is 1 or more, there are no more dims than a tensor of ours may have, and a
  // file of this length can hold as many elements of `element_bytes`.
  std::uint64_t count_of(const std::string& name, std::span<const std::uint64_t> dims,
                         std::uint64_t element_bytes) const;
  // The tensor whose values lie in `values`, as fp32; those of float64 are rounded.
  static ParameterStore::Entry tensor(std::string name, std::span<const std::uint64_t> dims, std::string_view values,
                                      StoredFloat form);

 private:
  std::string path_;
  std::string_view bytes_;
};

// A whole number that PyTorch keeps beside the weights: the batches that a norm has seen, the steps that a mean of
// weights is of. Nothing here needs it.
bool is_counter(std::string_view name);

}  // namespace lockstep
