#include "files/content_hash.hpp"

#include <fmt/format.h>

#include "base/text/json_text.hpp"

namespace lockstep {

ContentHash::ContentHash() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_128bits_reset(state_.get()); }

void ContentHash::begin_tensors(const std::string& field) { tensors_[field] = nlohmann::json::array(); }

void ContentHash::begin_tensor(const std::string& field, const std::string& name,
                               const std::vector<std::int64_t>& dims) {
  tensors_[field].push_back(nlohmann::json::array({name, dims}));
}

void ContentHash::add_values(std::span<const float> values) {
  XXH3_128bits_update(state_.get(), values.data(), values.size_bytes());
}

void ContentHash::add_tensor(const std::string& field, const ParameterStore::Entry& tensor) {
  begin_tensor(field, tensor.name, tensor.dims);
  add_values(tensor.values);
}

void ContentHash::add_tensors(const std::string& field, std::span<const ParameterStore::Entry> tensors) {
  begin_tensors(field);
  for (const ParameterStore::Entry& tensor : tensors) add_tensor(field, tensor);
}

std::string ContentHash::digest(nlohmann::json fields) {
  fields.update(tensors_);
  const std::string text = json_text(fields);
  XXH3_128bits_update(state_.get(), text.data(), text.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace lockstep
