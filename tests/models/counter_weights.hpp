// The weights of large nets in golden files, which need not store them: set_counter_weights() and
// set_counter_statistics() of tests/golden/make_golden.py.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "models/counter_values.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep::test {

inline bool is_statistic(const ParameterStore::Entry& entry) {
  return entry.name.find(".running_") != std::string::npos;
}

// `last_norm_of_branch`: how the names of norms end that a block's sum follows.
inline void set_counter_weights(ParameterStore& store, std::string_view last_norm_of_branch) {
  std::vector<ParameterStore::Entry> entries = store.entries();
  std::uint64_t stream = 0;
  for (ParameterStore::Entry& entry : entries) {
    if (is_statistic(entry)) continue;
    const std::vector<std::int64_t>& dims = entry.dims;
    entry.values = counter_uniform(stream++, static_cast<std::int64_t>(entry.values.size()));
    const bool is_scale = entry.name.ends_with("weight");
    const bool ends_branch = entry.name.ends_with(last_norm_of_branch);
    for (float& value : entry.values) {
      if (dims.size() == 4) {
        value *= static_cast<float>(std::sqrt(6.0 / static_cast<double>(dims[0] * dims[2] * dims[3])));
      } else if (entry.name.starts_with("fc.")) {
        value *= 0x1p-6F;
      } else {
        value = (value * 0.25F + (is_scale ? 1.0F : 0.0F)) * (ends_branch ? 0.1F : 1.0F);
      }
    }
  }
  store.assign(entries);
}

inline void set_counter_statistics(ParameterStore& store) {
  constexpr std::uint64_t first_stream = 2000;
  std::vector<ParameterStore::Entry> entries = store.entries();
  std::uint64_t stream = first_stream;
  for (ParameterStore::Entry& entry : entries) {
    if (!is_statistic(entry)) continue;
    entry.values = counter_uniform(stream++, static_cast<std::int64_t>(entry.values.size()));
    for (float& value : entry.values) value = value * 0.25F + (entry.name.ends_with("running_var") ? 1.0F : 0.0F);
  }
  store.assign(entries);
}

}  // namespace lockstep::test
