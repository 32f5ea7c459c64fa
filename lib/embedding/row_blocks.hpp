// How the rows of a table are divided among ranks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep {

struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  std::int64_t end() const { return first + count; }
  bool contains(std::int64_t row) const { return row >= first && row < end(); }
  bool operator==(const RowRange&) const = default;
};

inline RowRange overlap(const RowRange& a, const RowRange& b) {
  const std::int64_t first = std::max(a.first, b.first);
  return {first, std::max<std::int64_t>(0, std::min(a.end(), b.end()) - first)};
}

// Blocks of equal size on `ranks` ranks from `first_rank` on. The last blocks may be smaller or empty. Other ranks have
// no rows.
struct RowBlocks {
  std::int64_t rows = 0;
  int first_rank = 0;
  int ranks = 1;

  std::int64_t size() const { return std::max<std::int64_t>(1, (rows + ranks - 1) / ranks); }
  RowRange of(int rank) const {
    if (rank < first_rank || rank >= first_rank + ranks) return {};
    return overlap({(rank - first_rank) * size(), size()}, {0, rows});
  }
};

}  // namespace lockstep
