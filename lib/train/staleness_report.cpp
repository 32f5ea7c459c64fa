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
  const char* const one = staleness.of_programs ? "trainer" : "rank";
  std::string by_trainer;
  if (staleness.pushed.size() > 1) {
    const auto [fewest, most] = std::ranges::minmax_element(staleness.pushed);
    by_trainer = fmt::format("{} ({} {}) to {} ({} {}) per trainer; ", *fewest, one, fewest - staleness.pushed.begin(),
                             *most, one, most - staleness.pushed.begin());
  }
  std::vector<std::string> losers;
  bool loses_much = false;
  for (std::size_t rank = 0; rank < staleness.dropped.size(); ++rank) {
    if (staleness.dropped[rank] > 0) losers.push_back(fmt::format("{} {}: {}", one, rank, staleness.dropped[rank]));
    loses_much = loses_much || 10 * staleness.dropped[rank] > staleness.pushed[rank];
  }
  return fmt::format("{} in this attempt: {:.1f} updates old on average, {}{} too old and dropped{}{}",
                     counted(sum(staleness.pushed), "gradient"),
                     static_cast<double>(ages) / static_cast<double>(applied), by_trainer, sum(staleness.dropped),
                     losers.empty() ? "" : fmt::format(" ({})", fmt::join(losers, ", ")),
                     loses_much ? ". To keep more of them, raise --lag-ratio" : "");
}

Staleness since(const Staleness& earlier, const Staleness& now) {
  const auto difference = [](const std::vector<std::int64_t>& before, std::vector<std::int64_t> counts) {
    for (std::size_t i = 0; i < before.size(); ++i) counts[i] -= before[i];
    return counts;
  };
  return {difference(earlier.applied, now.applied), difference(earlier.pushed, now.pushed),
          difference(earlier.dropped, now.dropped), now.of_programs};
}

nlohmann::json staleness_fields(const Staleness& staleness) {
  return {{"pushes", staleness.pushed}, {"dropped_pushes", staleness.dropped}, {"applied_by_age", staleness.applied}};
}

}  // namespace lockstep
