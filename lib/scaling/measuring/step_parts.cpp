#include "scaling/measuring/step_parts.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace lockstep {
namespace {

double& part_of(StepParts& parts, StepPart part) { return parts.seconds[static_cast<std::size_t>(part)]; }

}  // namespace

StepParts split_step_times(std::span<const std::vector<RankStep>> steps, std::span<const std::int64_t> bucket_bytes,
                           double step_seconds) {
  assert(!steps.empty() && !steps[0].empty());
  StepParts parts;
  parts.by_rank.resize(steps.size());
  for (const std::int64_t bytes : bucket_bytes) parts.buckets.push_back({bytes, 0, 0});
  const std::size_t count = steps[0].size();
  const double share = 1 / static_cast<double>(count * steps.size());  // weight of one rank's step
  for (std::size_t index = 0; index < count; ++index) {
    double last = 0;
    for (const std::vector<RankStep>& rank : steps) last = std::max(last, rank[index].arrival());
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
      const RankStep& step = steps[rank][index];
      const double late = std::clamp(last - step.arrival(), 0.0, step.waiting);
      part_of(parts, StepPart::input) += share * step.input;
      part_of(parts, StepPart::forward) += share * step.forward;
      part_of(parts, StepPart::backward) += share * (step.backward - step.summing);
      part_of(parts, StepPart::exposed) += share * (step.waiting - late + step.summing);
      part_of(parts, StepPart::imbalance) += share * late;
      part_of(parts, StepPart::optimizer) += share * step.optimizer;
      parts.by_rank[rank].input += step.input / static_cast<double>(count);
      parts.by_rank[rank].arrival += step.arrival() / static_cast<double>(count);
    }
    for (std::size_t bucket = 0; bucket < parts.buckets.size(); ++bucket) {
      double earliest = steps[0][index].sum_begins[bucket];
      double latest = earliest;
      for (const std::vector<RankStep>& rank : steps) {
        const RankStep& step = rank[index];
        const double begin = step.sum_begins[bucket];
        earliest = std::min(earliest, begin);
        latest = std::max(latest, begin);
        const double into_backward = begin - step.input - step.forward;
        parts.buckets[bucket].ready +=
            share * (step.backward > 0 ? std::clamp(into_backward / step.backward, 0.0, 1.0) : 1.0);
      }
      parts.buckets[bucket].skew += (latest - earliest) / static_cast<double>(count);
    }
  }
  for (Bucket& bucket : parts.buckets) bucket.ready = std::min(bucket.ready, 1.0);  // removes rounding errors
  const double accounted = std::accumulate(parts.seconds.begin(), parts.seconds.end(), 0.0);
  part_of(parts, StepPart::other) = std::max(step_seconds - accounted, 0.0);
  return parts;
}

}  // namespace lockstep
