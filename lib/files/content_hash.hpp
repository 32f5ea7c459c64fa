// One hash over tensors and the small fields beside them.
#pragma once

#include <xxhash.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "nn/parameter_store.hpp"

namespace lockstep {

// xxh3-128 over the fp32 bytes of all tensors, then over the fields as compact JSON with sorted keys, among them the
// names and dims of the tensors: every field delimited, so that no two files look alike.
class ContentHash {
 public:
  ContentHash();
  // `field` names the list of tensors among the fields.
  void add_tensors(const char* field, std::span<const ParameterStore::Entry> tensors);
  // 32 hex digits.
  std::string digest(nlohmann::json fields);

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
  nlohmann::json tensors_ = nlohmann::json::object();
};

}  // namespace lockstep
