#include "files/content_hash.hpp"

#include <fmt/format.h>

#include "base/text/json_text.hpp"

namespace lockstep {

ContentHash::ContentHash() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_128bits_reset(state_.get()); }

void ContentHash::add_tensors(const char* field, std::span<const ParameterStore::Entry> tensors) {
  nlohmann::json& list = tensors_[field] = nlohmann::json::array();
  for (const ParameterStore::Entry& entry : tensors) {
    list.push_back(nlohmann::json::array({entry.name, entry.dims}));
    XXH3_128bits_update(state_.get(), entry.values.data(), entry.values.size() * sizeof(float));
  }
}

std::string ContentHash::digest(nlohmann::json fields) {
  fields.update(tensors_);
  const std::string text = json_text(fields);
  XXH3_128bits_update(state_.get(), text.data(), text.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace lockstep
