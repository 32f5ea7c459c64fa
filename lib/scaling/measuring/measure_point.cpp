#include "scaling/measuring/measure_point.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "nn/initialize.hpp"
#include "optim/optimizer.hpp"
#include "runtime/watch/rank_status.hpp"
#include "scaling/measuring/all_reduce_log.hpp"
#include "scaling/measuring/cpu_contention.hpp"
#include "scaling/measuring/step_parts.hpp"
#include "step/all_reduce.hpp"
#include "step/noise.hpp"
#include "step/training_step.hpp"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double learning_rate = 1e-3;  // small: noise cannot be learned, and the loss must stay finite
constexpr std::int64_t untimed_steps = 3;
constexpr std::int64_t least_steps = 5;
constexpr std::int64_t max_steps = 500;

// Returns the same batch every time.
class NoiseLoader final : public Loader {
 public:
  explicit NoiseLoader(Batch batch) : batch_(std::move(batch)) {}
  const Batch& next() override { return batch_; }
  double waited_ms() const override { return 0; }

 private:
  Batch batch_;
};

double spent_in(std::initializer_list<Phase> phases) {
  std::int64_t spent = 0;
  for (const Phase phase : phases) spent += rank_status::record().spent_ns[static_cast<std::size_t>(phase)].load();
  return 1e-9 * static_cast<double>(spent);
}

// This rank's times so far, without the current phase.
RankStep spent_so_far(const WeightSync& sync) {
  return {spent_in({Phase::reading}),
          spent_in({Phase::forward}),
          spent_in({Phase::backward}),
          1e-3 * sync.cost().within_backward_ms,
          spent_in({Phase::reducing, Phase::sharing_norms, Phase::gathering_weights}),
          spent_in({Phase::updating})};
}

void require_finite(const StepResult& result) {
  require(result.divergence.empty(), Failure::diverged, "{}", result.divergence);
}

LoaderShare share_of(const Communicator& ranks, const PointSettings& settings) {
  BatchOptions batch;
  batch.batch_per_rank = settings.batch_per_rank;
  batch.local_steps = static_cast<int>(settings.exchange.local_steps);
  return loader_share(batch, ranks.rank(), ranks.size(), static_cast<int>(settings.exchange.servers));
}

WeightSyncOptions sync_options(const PointSettings& settings) {
  WeightSyncOptions options{settings.sums, {.momentum_kind = Momentum::nesterov}, {}};
  options.reduce.servers = static_cast<int>(settings.exchange.servers);
  options.reduce.powersgd_rank = static_cast<int>(settings.exchange.powersgd_rank);
  if (settings.exchange.local_steps > 1) options.local = LocalUpdates{static_cast<int>(settings.exchange.local_steps)};
  return options;
}

// All objects that exist while a point is measured.
struct Setting {
  Setting(const Communicator& ranks, const PointSettings& settings)
      : session{ranks, with_all_reduce_log(open_backend(settings.device), log)},
        share(share_of(ranks, settings)),
        model(session.device(), settings.model, settings.make_network),
        sync(make_weight_sync(session, model.store, sync_options(settings), share.total_micro_batches)),
        step(session, model, *sync, share, 0.0F) {
    session.plan_folder = settings.device.plan_folder;
    initialize(model.store, 0);
    step.choose_kernels({});
    loader = make_loader(settings);
  }

  std::unique_ptr<Loader> make_loader(const PointSettings& settings) {
    const StudyInput& input = settings.input;
    if (input.dataset == nullptr) {
      return std::make_unique<NoiseLoader>(
          noise_batch(session.device(), settings.model.sample, settings.batch_per_rank, settings.model.classes));
    }
    return session.backend->load_onto(
        training_source(*input.dataset, share, input.rules, 0, 0, 0, input.loader_threads), input.place);
  }

  AllReduceLog log;
  Session session;
  LoaderShare share;
  Model model;
  std::unique_ptr<WeightSync> sync;
  TrainingStep step;
  std::unique_ptr<Loader> loader;
  std::int64_t steps = 0;  // started so far
};

// A barrier without sleeping, so that ranks leave it promptly.
void meet(const Communicator& ranks) {
  const std::array<double, 1> own = {0};
  std::vector<double> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(own, all);
}

// If the host runs ahead of its device, only whole steps can be timed.
double time_queued_steps(Setting& setting, std::int64_t count) {
  const Stopwatch watch;
  for (std::int64_t index = 0; index < count; ++index) {
    setting.step.start(*setting.loader, setting.steps++, learning_rate);
    if (setting.step.steps_in_flight() > setting.session.device().steps_ahead()) require_finite(setting.step.finish());
  }
  while (setting.step.steps_in_flight() > 0) require_finite(setting.step.finish());
  setting.session.device().synchronize();
  return watch.seconds() / static_cast<double>(count);
}

RankStep run_step(Setting& setting) {
  const RankStep before = spent_so_far(*setting.sync);
  setting.log.begins.clear();
  const Clock::time_point begin = Clock::now();
  require_finite(setting.step.run(*setting.loader, setting.steps++, learning_rate));
  rank_status::enter(Phase::gathering);  // ends the previous phase
  RankStep step = spent_so_far(*setting.sync);
  step.input -= before.input;
  step.forward -= before.forward;
  step.backward -= before.backward;
  step.summing -= before.summing;
  step.waiting -= before.waiting;
  step.optimizer -= before.optimizer;
  for (const AllReduceLog::Begin& sum : setting.log.begins) {
    step.sum_begins.push_back(std::chrono::duration<double>(sum.at - begin).count());
  }
  return step;
}

// Collective. Returns the steps of all ranks, by rank, on every rank.
std::vector<std::vector<RankStep>> gather_steps(const Communicator& ranks, const std::vector<RankStep>& own) {
  const std::size_t buckets = own[0].sum_begins.size();
  std::vector<double> flat;
  for (const RankStep& step : own) {
    flat.insert(flat.end(), {step.input, step.forward, step.backward, step.summing, step.waiting, step.optimizer});
    flat.insert(flat.end(), step.sum_begins.begin(), step.sum_begins.end());
  }
  std::vector<double> all(flat.size() * static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(flat, all);
  std::vector<std::vector<RankStep>> steps(static_cast<std::size_t>(ranks.size()));
  auto at = all.begin();
  for (std::vector<RankStep>& rank : steps) {
    for (std::size_t index = 0; index < own.size(); ++index) {
      rank.push_back(
          {at[0], at[1], at[2], at[3], at[4], at[5], {at + 6, at + 6 + static_cast<std::ptrdiff_t>(buckets)}});
      at += 6 + static_cast<std::ptrdiff_t>(buckets);
    }
  }
  return steps;
}

// Collective. The all-reduce time of `bytes`: the slowest rank's, median over several rounds.
double sum_seconds(const Communicator& ranks, Setting& setting, std::int64_t bytes) {
  constexpr std::size_t rounds = 9;
  const Tensor slice = setting.log.values.slice(0, bytes / size_of(DType::f32));
  std::array<double, rounds> seconds{};
  for (double& one : seconds) {
    meet(ranks);
    const Stopwatch watch;
    setting.log.reducer->start_sum(slice);
    setting.log.reducer->wait();
    setting.session.device().synchronize();
    one = ranks.max(watch.seconds());
  }
  std::ranges::nth_element(seconds, seconds.begin() + rounds / 2);
  return seconds[rounds / 2];
}

// Collective. Measures the model's own buckets, and sizes around them to separate latency from bandwidth.
std::vector<MeasuredAllReduce> measure_bucket_sums(const Communicator& ranks, Setting& setting,
                                                   const std::vector<std::int64_t>& bucket_bytes) {
  const std::int64_t whole = setting.log.values.bytes();
  std::set<std::int64_t> sizes(bucket_bytes.begin(), bucket_bytes.end());
  for (const std::int64_t bytes : {16 << 10, 128 << 10, 1 << 20, 4 << 20, 16 << 20}) {
    sizes.insert(std::min<std::int64_t>(bytes, whole));
  }
  // Clears the gradients, which would otherwise grow without bound.
  const std::vector<float> zeros(static_cast<std::size_t>(setting.log.values.shape().count()));
  setting.session.device().write(zeros, setting.log.values);
  std::vector<MeasuredAllReduce> sums;
  sums.reserve(sizes.size());
  for (const std::int64_t bytes : sizes) sums.push_back({bytes, {sum_seconds(ranks, setting, bytes)}});
  return sums;
}

// Of trainers: servers do nothing but exchange.
void measure_parts(const Communicator& ranks, Setting& setting, std::int64_t count, StudyPoint& point,
                   std::vector<std::int64_t>& bucket_bytes) {
  std::vector<RankStep> own;
  own.reserve(static_cast<std::size_t>(count));
  rank_status::enter(Phase::gathering);  // excludes earlier work from the first step
  const Stopwatch watch;
  for (std::int64_t index = 0; index < count; ++index) own.push_back(run_step(setting));
  const double seconds = ranks.max(watch.seconds()) / static_cast<double>(count);
  point.step_seconds = {seconds};
  for (const AllReduceLog::Begin& sum : setting.log.begins) bucket_bytes.push_back(sum.bytes);
  std::vector<std::vector<RankStep>> steps = gather_steps(ranks, own);
  steps.resize(static_cast<std::size_t>(setting.share.total_micro_batches / setting.share.updates));
  StepParts parts = split_step_times(steps, bucket_bytes, seconds);
  for (std::size_t part = 0; part < step_part_count; ++part) point.parts[part] = {parts.seconds[part]};
  point.buckets = std::move(parts.buckets);
  point.by_rank = std::move(parts.by_rank);
  const std::vector<std::string> hosts = ranks.all_gather(log::host());
  for (std::size_t rank = 0; rank < point.by_rank.size(); ++rank) point.by_rank[rank].host = hosts[rank];
}

// Divides times of steps by the number of updates in each.
void count_by_updates(StudyPoint& point, double updates) {
  const auto divide = [&](std::vector<double>& all) {
    for (double& seconds : all) seconds /= updates;
  };
  divide(point.step_seconds);
  std::ranges::for_each(point.parts, divide);
  for (RankTimes& rank : point.by_rank) {
    rank.input /= updates;
    rank.arrival /= updates;
  }
}

}  // namespace

MeasuredPoint measure_point(const Communicator& ranks, const PointSettings& settings) {
  Setting setting(ranks, settings);
  StudyPoint point;
  point.grid = {ranks.size(), static_cast<int>(ranks.sum(ranks.local_rank() == 0 ? 1 : 0))};
  point.batch_per_rank = settings.batch_per_rank;
  point.setup.exchange = settings.exchange;

  const bool is_queued = setting.session.device().steps_ahead() > 0;
  std::vector<std::int64_t> bucket_bytes;
  time_queued_steps(setting, untimed_steps);
  const double first_seconds = std::max(ranks.max(time_queued_steps(setting, 1)), 1e-6);
  const std::int64_t count =
      std::clamp<std::int64_t>(std::llround(settings.seconds / first_seconds), least_steps, max_steps);
  meet(ranks);
  const CpuContention others;
  if (is_queued) {
    point.step_seconds = {ranks.max(time_queued_steps(setting, count))};
  } else {
    measure_parts(ranks, setting, count, point, bucket_bytes);
  }
  point.other_cores = {others.cores(ranks)};
  count_by_updates(point, setting.share.updates);
  if (ranks.size() > 1 && is_all_reduce(settings.exchange)) {
    point.sums = measure_bucket_sums(ranks, setting, bucket_bytes);
  }
  point.memory_bytes = std::llround(ranks.max(static_cast<double>(setting.session.device().peak_bytes())));
  return {std::move(point), setting.model.store.parameter_count(), setting.session.device().description(),
          setting.sync->description()};
}

void add_repeat(StudyPoint& all, const StudyPoint& repeat) {
  if (all.step_seconds.empty()) {
    all = repeat;
    return;
  }
  // insert() triggers GCC 14's -Wstringop-overflow by mistake.
  const auto append = [](std::vector<double>& to, const std::vector<double>& more) {
    std::ranges::copy(more, std::back_inserter(to));
  };
  append(all.step_seconds, repeat.step_seconds);
  append(all.other_cores, repeat.other_cores);
  for (std::size_t part = 0; part < step_part_count; ++part) append(all.parts[part], repeat.parts[part]);
  for (std::size_t sum = 0; sum < all.sums.size(); ++sum) append(all.sums[sum].seconds, repeat.sums[sum].seconds);
  all.buckets = repeat.buckets;
  all.by_rank = repeat.by_rank;
  all.memory_bytes = std::max(all.memory_bytes, repeat.memory_bytes);
}

}  // namespace lockstep
