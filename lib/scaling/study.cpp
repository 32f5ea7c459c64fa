#include "scaling/study.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace lockstep {
namespace {

struct StepPartText {
  std::string_view name;
  std::string_view message;
};
constexpr std::array<StepPartText, step_part_count> step_part_texts = {{{"input", "waiting for samples"},
                                                                        {"forward", "forward"},
                                                                        {"backward", "backward"},
                                                                        {"exposed", "exposed gradient all-reduces"},
                                                                        {"imbalance", "imbalance of ranks"},
                                                                        {"optimizer", "optimizer"},
                                                                        {"other", "other"}}};

}  // namespace

std::string_view name_of(StepPart part) { return step_part_texts[static_cast<std::size_t>(part)].name; }
std::string_view describe(StepPart part) { return step_part_texts[static_cast<std::size_t>(part)].message; }
std::string_view name_of(Scaling scaling) { return scaling == Scaling::weak ? "weak" : "strong"; }

double StudyPoint::part(StepPart part) const {
  const std::vector<double>& seconds = parts[static_cast<std::size_t>(part)];
  return seconds.empty() ? 0 : median_interval(seconds).middle;
}

bool is_default_point(const Study& study, const StudyPoint& point) { return point.setup == study.setup; }

int max_ranks_of(const Study& study) {
  int most = 0;
  for (const StudyPoint& point : study.points) most = std::max(most, point.grid.ranks);
  return most;
}

std::vector<std::int64_t> global_batches_of(const Study& study) {
  std::set<std::int64_t> batches;
  for (const StudyPoint& point : study.points) {
    if (is_default_point(study, point)) batches.insert(point.global_batch());
  }
  return {batches.begin(), batches.end()};
}

Interval best_throughput(const Study& study, std::int64_t global_batch) {
  Interval best;
  for (const StudyPoint& point : study.points) {
    if (!is_default_point(study, point) || point.global_batch() != global_batch) continue;
    const Interval rate = throughput_of(point);
    if (rate.middle > best.middle) best = rate;
  }
  return best;
}

std::vector<const StudyPoint*> points_of(const Study& study, Sweep sweep) {
  const int ranks = max_ranks_of(study);
  std::vector<const StudyPoint*> points;
  for (const StudyPoint& point : study.points) {
    if (point.grid.ranks != ranks || point.batch_per_rank != study.weak_batch) continue;
    StudySetup others = point.setup;
    if (sweep == Sweep::threads) others.threads = study.setup.threads;
    if (sweep == Sweep::buckets) others.bucket_mib = study.setup.bucket_mib;
    if (sweep == Sweep::precision) others.precision = study.setup.precision;
    if (sweep == Sweep::exchange) others.exchange = study.setup.exchange;
    if (others != study.setup) continue;
    points.insert(is_default_point(study, point) ? points.begin() : points.end(), &point);
  }
  if (points.size() < 2 || !is_default_point(study, *points.front())) points.clear();
  return points;
}

std::vector<const StudyPoint*> points_of(const Study& study, Scaling scaling) {
  std::vector<const StudyPoint*> points;
  for (const StudyPoint& point : study.points) {
    if (!is_default_point(study, point)) continue;
    const bool is_of = scaling == Scaling::weak ? point.batch_per_rank == study.weak_batch
                                                : point.global_batch() == study.strong_batch;
    if (is_of) points.push_back(&point);
  }
  std::ranges::sort(points, {}, [](const StudyPoint* point) { return point->grid.ranks; });
  return points;
}

Interval throughput_of(const StudyPoint& point) {
  std::vector<double> rates;
  for (const double seconds : point.step_seconds) rates.push_back(static_cast<double>(point.global_batch()) / seconds);
  return median_interval(rates);
}

Interval speed_ratio(const StudyPoint& point, const StudyPoint& base) {
  return efficiency_of(point, base) * (static_cast<double>(point.grid.ranks) / base.grid.ranks);
}

Interval efficiency_of(const StudyPoint& point, const StudyPoint& base) {
  const auto per_rank = [](const StudyPoint& of) { return static_cast<double>(of.global_batch()) / of.grid.ranks; };
  std::vector<double> shares;
  const std::size_t repeats = std::min(point.step_seconds.size(), base.step_seconds.size());
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    shares.push_back(per_rank(point) / point.step_seconds[repeat] * base.step_seconds[repeat] / per_rank(base));
  }
  return median_interval(shares);
}

}  // namespace lockstep
