#include "comm/joined_texts.hpp"

#include <limits>

#include "base/error.hpp"

namespace lockstep {

int message_length(std::size_t bytes) {
  require(bytes <= std::numeric_limits<int>::max(), Failure::other,
          "cannot exchange {} bytes. A message between ranks holds at most 2 GiB.", bytes);
  return static_cast<int>(bytes);
}

std::vector<int> offsets_of(const std::vector<std::uint64_t>& lengths) {
  std::vector<int> offsets = {0};
  std::uint64_t end = 0;
  for (const std::uint64_t length : lengths) offsets.push_back(message_length(end += length));
  return offsets;
}

std::vector<std::string> cut(const std::string& all, const std::vector<int>& offsets) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    texts.push_back(
        all.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(offsets[i + 1] - offsets[i])));
  }
  return texts;
}

}  // namespace lockstep
