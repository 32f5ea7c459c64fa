#include "train/staleness_report.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text/counted.hpp"

namespace lockstep {

std::string staleness_text(const Staleness& staleness) {
  const auto sum = [](const std::vector<std::int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  };
  std::int64_t ages = 0;
  for (std::size_t age = 0; age < staleness.applied.size(); ++age) {
    ages += static_cast<std::int64_t>(age) * staleness.applied[age];
  }
  const std::int64_t applied = std::max(sum(staleness.applied), std::int64_t{1});
  std::vector<std::string> ranks;
  for (std::size_t rank = 0; rank < staleness.dropped.size(); ++rank) {
    if (staleness.dropped[rank] > 0) ranks.push_back(fmt::format("rank {}: {}", rank, staleness.dropped[rank]));
  }
  return fmt::format("{} so far: {:.1f} updates old on average, {} dropped as too old{}",
                     counted(sum(staleness.pushed), "gradient"),
                     static_cast<double>(ages) / static_cast<double>(applied), sum(staleness.dropped),
                     ranks.empty() ? "" : fmt::format(" ({})", fmt::join(ranks, ", ")));
}

Staleness since(const Staleness& earlier, const Staleness& now) {
  const auto difference = [](const std::vector<std::int64_t>& before, std::vector<std::int64_t> counts) {
    for (std::size_t i = 0; i < before.size(); ++i) counts[i] -= before[i];
    return counts;
  };
  return {difference(earlier.applied, now.applied), difference(earlier.pushed, now.pushed),
          difference(earlier.dropped, now.dropped)};
}

nlohmann::json staleness_fields(const Staleness& staleness) {
  return {{"pushes", staleness.pushed}, {"dropped_pushes", staleness.dropped}, {"applied_by_age", staleness.applied}};
}

}  // namespace lockstep
