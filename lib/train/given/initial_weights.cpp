#include "train/given/initial_weights.hpp"

#include <algorithm>
#include <string>

#include "files/foreign/given_weights.hpp"

namespace lockstep {

namespace {

// "fc." of "fc.bias": the layer that was registered last.
std::string head_of(const ParameterStore& store) {
  const std::string& last = store.parameters().back().name;
  return last.substr(0, last.rfind('.') + 1);
}

}  // namespace

void load_initial_weights(const std::filesystem::path& path, Head head, Model& model) {
  std::vector<ParameterStore::Entry> entries = read_given_weights(path).entries;
  if (head == Head::fresh) {
    const std::string name = head_of(model.store);
    const auto is_head = [&name](const ParameterStore::Entry& entry) { return entry.name.starts_with(name); };
    std::erase_if(entries, is_head);
    for (ParameterStore::Entry& own : model.store.entries()) {
      if (is_head(own)) entries.push_back(std::move(own));
    }
  }
  model.store.assign(entries);
}

}  // namespace lockstep
