#include "base/text/nearest_name.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

// The optimal string alignment distance: Levenshtein's, with an exchange of neighbors as one edit.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (a[i] == b[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1});
      const bool exchanged = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (exchanged) row[j + 1] = std::min(row[j + 1], before_last[j - 1] + 1);
    }
    before_last = std::exchange(last, std::move(row));
  }
  return last.back();
}

constexpr std::size_t longest_word = 100;

}  // namespace

std::string nearest_name(std::string_view word, std::span<const std::string> names) {
  std::string nearest;
  if (word.empty() || word.size() > longest_word) return nearest;
  std::size_t limit = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names) {
    if (!name.empty() && word.starts_with(name + "-")) continue;  // another option, of the same family
    const std::size_t edits = edits_between(word, name);
    if (edits >= std::min(limit, std::max(word.size(), name.size()))) continue;
    limit = edits;
    nearest = name;
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  const std::string nearest = nearest_name(word, names);
  return nearest.empty() ? "" : fmt::format("Did you mean {}? ", nearest);
}

}  // namespace lockstep
