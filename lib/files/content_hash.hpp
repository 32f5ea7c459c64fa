// A hash over tensors and small fields.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "nn/parameter_store.hpp"

namespace lockstep {

// xxh3-128 over the fp32 bytes of all tensors, then over the fields as compact JSON with sorted keys. The JSON includes
// the names and dims of the tensors. Every field is delimited, so that different contents give different input.
class ContentHash {
 public:
  ContentHash();
  // `field` is the key of the list of tensors in the JSON. Tensors are added one by one, or all at once. The values of
  // one may be added in pieces.
  void begin_tensors(const std::string& field);
  void begin_tensor(const std::string& field, const std::string& name, const std::vector<std::int64_t>& dims);
  void add_values(std::span<const float> values);
  void add_tensor(const std::string& field, const ParameterStore::Entry& tensor);
  void add_tensors(const std::string& field, std::span<const ParameterStore::Entry> tensors);
  // 32 hex digits.
  std::string digest(nlohmann::json fields);

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
  nlohmann::json tensors_ = nlohmann::json::object();
};

}  // namespace lockstep
