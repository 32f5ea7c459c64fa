#include "scaling/study_points.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace lockstep {

std::vector<int> default_rank_counts(int ranks) {
  std::vector<int> counts;
  for (std::int64_t count = 1; count < ranks; count *= 2) counts.push_back(static_cast<int>(count));
  counts.push_back(ranks);
  return counts;
}

std::int64_t default_strong_batch(std::int64_t weak_batch, std::span<const int> rank_counts) {
  std::int64_t multiple = 1;
  for (const int count : rank_counts) {
    multiple = std::lcm(multiple, static_cast<std::int64_t>(count));
    require(multiple <= std::int64_t{1} << 20, Failure::usage,
            "the rank counts (--ranks) have no common multiple below a million, so no global batch fits all of them. "
            "Choose counts that divide each other, or set --global-batch.");
  }
  return (weak_batch + multiple - 1) / multiple * multiple;
}

std::vector<PlannedPoint> plan_sweeps(const PlannedPoint& base, const SweptValues& values) {
  for (const Exchange& exchange : values.exchange) require_trainers(exchange, base.ranks);
  std::vector<PlannedPoint> points;
  const auto vary = [&](auto member, const auto& others) {
    for (const auto& value : others) {
      PlannedPoint point = base;
      point.setup.*member = value;
      if (point != base && std::ranges::find(points, point) == points.end()) points.push_back(point);
    }
  };
  vary(&StudySetup::threads, values.threads);
  vary(&StudySetup::bucket_mib, values.bucket_mib);
  vary(&StudySetup::precision, values.precision);
  vary(&StudySetup::exchange, values.exchange);
  return points;
}

std::vector<PlannedPoint> plan_points(std::span<const int> rank_counts, int ranks, std::int64_t weak_batch,
                                      std::int64_t strong_batch) {
  std::vector<int> counts(rank_counts.begin(), rank_counts.end());
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<PlannedPoint> points;
  for (const int count : counts) {
    require(count <= ranks, Failure::usage,
            "cannot measure {} ranks (--ranks) in a job of {}. Start more ranks, or choose fewer.", count, ranks);
    require(strong_batch % count == 0, Failure::usage,
            "the global batch of {} (--global-batch) is not divisible by {} ranks. Choose a multiple of {}.",
            strong_batch, count, count);
    points.push_back({count, weak_batch});
    if (strong_batch != weak_batch * count) points.push_back({count, strong_batch / count});
  }
  return points;
}

}  // namespace lockstep
