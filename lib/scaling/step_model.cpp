#include "scaling/step_model.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace lockstep {
namespace {

Features of_computing(const StepSetting& setting) {
  const auto samples = static_cast<double>(setting.batch_per_rank);
  return {1, samples, samples * (setting.grid.ranks_per_node() - 1)};
}

double at_repeat(const StudyPoint& point, StepPart part, std::size_t repeat) {
  return point.parts[static_cast<std::size_t>(part)][repeat];
}

double computing_of(const StudyPoint& point, std::size_t repeat) {
  return at_repeat(point, StepPart::forward, repeat) + at_repeat(point, StepPart::backward, repeat);
}

StepSetting setting_of(const StudyPoint& point) { return {point.grid, point.batch_per_rank}; }

Interval around(double middle, double half_width) { return {middle, middle - half_width, middle + half_width}; }

double bytes_of(std::span<const Bucket> buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), 0.0,
                         [](double sum, const Bucket& bucket) { return sum + static_cast<double>(bucket.bytes); });
}

// Of an update, without the exchange of gradients.
double alone_seconds(const StudyPoint& point) {
  return median_interval(point.step_seconds).middle - point.part(StepPart::exposed) - point.part(StepPart::imbalance);
}

// Predicted for a point with several ranks.
Exposure modelled_exposure(const StepModel& model, const RankGrid& grid, std::span<const Bucket> buckets,
                           double backward_seconds) {
  return exposure_of(buckets, backward_seconds,
                     [&](std::int64_t bytes) { return model.sums.seconds(grid, static_cast<double>(bytes)).middle; });
}

std::vector<const StudyPoint*> points_up_to(const Study& study, int max_ranks) {
  std::vector<const StudyPoint*> points;
  for (const StudyPoint& point : study.points) {
    if (is_default_point(study, point) && point.grid.ranks <= max_ranks && point.has_parts()) points.push_back(&point);
  }
  return points;
}

// Of points that differ from a default one by their compression alone.
std::vector<CompressedSteps> compressed_steps(const Study& study, std::span<const StudyPoint* const> points) {
  std::vector<CompressedSteps> compressed;
  for (const StudyPoint* const point : points_of(study, Sweep::exchange)) {
    const std::int64_t rank = point->setup.exchange.powersgd_rank;
    const auto base = std::ranges::find_if(points, [&](const StudyPoint* other) {
      return other->grid == point->grid && other->batch_per_rank == point->batch_per_rank;
    });
    if (rank == 0 || !point->has_parts() || base == points.end()) continue;
    compressed.push_back({rank, point->buckets, std::max(alone_seconds(*point) - alone_seconds(**base), 0.0)});
  }
  return compressed;
}

Features of_servers(const RankGrid& grid, std::int64_t servers, double bytes) {
  constexpr double rounds = 2;  // gradients one way, weights the other
  return {rounds * pushed_through_busiest_link(grid, servers) * bytes, rounds};
}

std::vector<ServerExchange> fit_servers(const Study& study, int max_ranks, double bytes) {
  std::map<std::pair<std::int64_t, bool>, std::vector<Observation>> observations;
  for (const StudyPoint& point : study.points) {
    const std::int64_t servers = point.setup.exchange.servers;
    if (servers == 0 || point.grid.ranks > max_ranks) continue;
    for (const double seconds : point.parts[static_cast<std::size_t>(StepPart::exposed)]) {
      observations[{servers, point.grid.nodes > 1}].push_back(
          {of_servers(point.grid, servers, bytes), seconds, std::max(seconds, 1e-9)});
    }
  }
  std::vector<ServerExchange> exchanges;
  for (const auto& [place, seconds] : observations) {
    exchanges.push_back({place.first, place.second, fit_non_negative(seconds)});
  }
  return exchanges;
}

AllReduceModel sums_of(std::span<const StudyPoint* const> points) {
  std::vector<AllReduceSample> samples;
  for (const StudyPoint* const point : points) {
    for (const MeasuredAllReduce& sum : point->sums) {
      for (const double seconds : sum.seconds) {
        samples.push_back({point->grid, static_cast<double>(sum.bytes), seconds});
      }
    }
  }
  return fit_all_reduces(samples);
}

template <typename Observe>
Regression fit_over(std::span<const StudyPoint* const> points, const Observe& observe) {
  std::vector<Observation> observations;
  for (const StudyPoint* const point : points) {
    for (std::size_t repeat = 0; repeat < point->step_seconds.size(); ++repeat) {
      observations.push_back(observe(*point, repeat));
    }
  }
  return fit_non_negative(observations);
}

}  // namespace

Exposure exposure_of(std::span<const Bucket> buckets, double backward_seconds,
                     const std::function<double(std::int64_t bytes)>& sum_seconds) {
  Exposure exposure;
  double end = 0;
  for (const Bucket& bucket : buckets) {
    const double seconds = sum_seconds(bucket.bytes);
    end = std::max(end, bucket.ready * backward_seconds) + seconds;
    exposure.after += seconds;
  }
  exposure.overlapped = std::max(end - backward_seconds, 0.0);
  return exposure;
}

std::vector<Bucket> rebucket(std::span<const Bucket> buckets, std::int64_t bytes) {
  assert(bytes > 0);
  std::vector<Bucket> cut;
  std::int64_t held = 0;
  if (buckets.empty()) return cut;
  // Assumes that the gradients within a bucket become ready at a constant rate.
  double ready = 0;
  for (const Bucket& bucket : buckets.first(buckets.size() - 1)) {
    std::int64_t rest = bucket.bytes;
    while (held + rest >= bytes) {
      const std::int64_t taken = bytes - held;
      const double share = 1 - static_cast<double>(rest - taken) / static_cast<double>(bucket.bytes);
      cut.push_back({bytes, ready + share * (bucket.ready - ready)});
      rest -= taken;
      held = 0;
    }
    held += rest;
    ready = bucket.ready;
  }
  if (held > 0) cut.push_back({held, ready});
  cut.push_back(buckets.back());
  return cut;
}

const CompressedSteps* StepModel::find_compressed(std::int64_t powersgd_rank) const {
  const auto found = std::ranges::find(compressed, powersgd_rank, &CompressedSteps::powersgd_rank);
  return found == compressed.end() ? nullptr : &*found;
}

const ServerExchange* StepModel::find_servers(const RankGrid& grid, std::int64_t count) const {
  const auto found = std::ranges::find_if(servers, [&](const ServerExchange& one) {
    return one.servers == count && one.on_several_nodes == (grid.nodes > 1);
  });
  return found == servers.end() ? nullptr : &*found;
}

Interval StepModel::exposed_to_servers(const StepSetting& setting) const {
  const Regression& seconds = find_servers(setting.grid, setting.exchange.servers)->seconds;
  const Features features = of_servers(setting.grid, setting.exchange.servers, bytes_of(buckets));
  return seconds.predict(features, seconds.at(features));
}

// Seconds of sums that computing does not hide, of an update that takes `without` seconds apart from them.
Interval StepModel::exposed_sums(const StepSetting& setting, std::span<const Bucket> sent, double backward_seconds,
                                 double without) const {
  const Exposure exposure = modelled_exposure(*this, setting.grid, sent, backward_seconds);
  const bool is_local = setting.exchange.local_steps > 1;
  const double a_sum = 1.0 / static_cast<double>(setting.exchange.local_steps);
  const Features hideable = {is_local ? 0.0 : exposure.hideable()};
  const double exposed = a_sum * (exposure.after - std::min(hidden.at(hideable), hideable.front()));
  const Interval shown = hidden.predict(hideable, without + exposed);
  double sums_error = 0;
  for (const Bucket& bucket : sent) {
    sums_error += sums.seconds(setting.grid, static_cast<double>(bucket.bytes)).half_width();
  }
  const double share = exposure.after > 0 ? exposed / exposure.after : 0;  // of each sum
  return around(exposed, std::hypot(shown.half_width(), share * sums_error));
}

StepPrediction StepModel::predict(const StepSetting& setting) const {
  const Exchange& exchange = setting.exchange;
  const CompressedSteps* const compression = find_compressed(exchange.powersgd_rank);
  assert(compression != nullptr || exchange.powersgd_rank == 0);
  StepPrediction prediction;
  const Features samples = of_computing(setting);
  const Interval computed = computing.predict(samples, computing.at(samples));
  prediction.computing = computed.middle;
  const Interval remaining = rest.predict(samples, rest.at(samples));
  prediction.rest = remaining.middle + (compression != nullptr ? compression->seconds : 0);
  // Random delays of independent updates add up to the square root of their number, and ranks wait once for all of
  // them.
  const double delays = 1 / std::sqrt(static_cast<double>(exchange.local_steps));
  const auto trainers = static_cast<int>(setting.grid.ranks - exchange.servers);
  const Features late = {delays * prediction.computing * expected_maximum(trainers)};
  const Interval waited = imbalance.predict(late, prediction.computing);
  prediction.imbalance = waited.middle;

  double error = std::hypot(computed.half_width(), remaining.half_width());
  if (setting.grid.ranks > 1) {
    const std::vector<Bucket> sent = compression != nullptr ? compression->buckets
                                     : setting.bucket_bytes ? rebucket(buckets, *setting.bucket_bytes)
                                                            : buckets;
    const double without = prediction.computing + prediction.rest + prediction.imbalance;
    const Interval exposed = exchange.servers > 0
                                 ? exposed_to_servers(setting)
                                 : exposed_sums(setting, sent, backward_share * prediction.computing, without);
    prediction.exposed = exposed.middle;
    error = std::hypot(error, waited.half_width(), exposed.half_width());
  }
  const double middle = prediction.computing + prediction.rest + prediction.imbalance + prediction.exposed;
  prediction.step = {middle, std::max(middle - error, 0.0), middle + error};
  return prediction;
}

std::optional<StepModel> fit_steps(const Study& study, int max_ranks) {
  const std::vector<const StudyPoint*> points = points_up_to(study, max_ranks);
  std::vector<const StudyPoint*> several;
  for (const StudyPoint* const point : points) {
    if (point->grid.ranks > 1 && !point->buckets.empty() && !point->sums.empty()) several.push_back(point);
  }
  if (several.empty()) return std::nullopt;

  StepModel model;
  for (const StudyPoint* const point : points) model.max_ranks = std::max(model.max_ranks, point->grid.ranks);
  model.buckets = several.back()->buckets;
  model.compressed = compressed_steps(study, points);
  model.servers = fit_servers(study, max_ranks, bytes_of(model.buckets));
  model.sums = sums_of(points);
  double forward = 0;
  double backward = 0;
  for (const StudyPoint* const point : points) {
    forward += point->part(StepPart::forward);
    backward += point->part(StepPart::backward);
  }
  model.backward_share = forward + backward > 0 ? backward / (forward + backward) : 0;
  model.computing = fit_over(points, [](const StudyPoint& point, std::size_t repeat) -> Observation {
    const double seconds = computing_of(point, repeat);
    return {of_computing(setting_of(point)), seconds, seconds};
  });
  model.rest = fit_over(points, [](const StudyPoint& point, std::size_t repeat) -> Observation {
    const double seconds = at_repeat(point, StepPart::input, repeat) + at_repeat(point, StepPart::optimizer, repeat) +
                           at_repeat(point, StepPart::other, repeat);
    return {of_computing(setting_of(point)), seconds, point.step_seconds[repeat]};
  });
  model.imbalance = fit_over(several, [](const StudyPoint& point, std::size_t repeat) -> Observation {
    const double computing = computing_of(point, repeat);
    return {{computing * expected_maximum(point.grid.ranks)}, at_repeat(point, StepPart::imbalance, repeat), computing};
  });
  model.hidden = fit_over(several, [&](const StudyPoint& point, std::size_t repeat) -> Observation {
    const Exposure exposure =
        modelled_exposure(model, point.grid, point.buckets, at_repeat(point, StepPart::backward, repeat));
    return {{exposure.hideable()},
            exposure.after - at_repeat(point, StepPart::exposed, repeat),
            point.step_seconds[repeat]};
  });
  return model;
}

BucketAdvice advise_bucket(const StepModel& model, StepSetting setting) {
  setting.bucket_bytes.reset();
  const double now = model.predict(setting).step.middle;
  BucketAdvice advice;
  double shortest = now;
  for (std::int64_t bytes = 1 << 20; bytes <= 64 << 20; bytes *= 2) {
    setting.bucket_bytes = bytes;
    const double step = model.predict(setting).step.middle;
    if (advice.bytes != 0 && step >= shortest) continue;
    shortest = step;
    advice = {bytes, 1 - step / now};
  }
  return advice;
}

}  // namespace lockstep
