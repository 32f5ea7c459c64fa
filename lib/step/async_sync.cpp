#include "step/async_sync.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "comm/server_all_reducer.hpp"
#include "device/flat/flat_passes.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

std::vector<std::vector<FlatPart>> parts_of_all(const AllReduce& all_reduce, int ranks) {
  std::vector<std::vector<FlatPart>> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(all_reduce.parts_of(rank));
  return parts;
}

float read_one(Device& device, const Tensor& value) {
  float read = 0;
  device.read(value, {&read, 1});
  return read;
}

}  // namespace

AsyncSync::AsyncSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                     const WeightSyncOptions& options, std::vector<FlatPart> parts, int micro_batches)
    : AsyncServerSync(world, store, std::move(all_reduce), options, std::move(parts),
                      trainers_of(world.size(), options.reduce.servers), micro_batches),
      exchange_(world, parts_of_all(*all_reduce_, world.size())),
      micro_batches_(micro_batches),
      first_micro_batches_(std::min(micro_batches / exchange_.trainers(), 2)),  // one is loaded, the other computed
      own_counts_(static_cast<std::size_t>(max_age_) + 2) {
  assert(first_micro_batches_ > 0);
  staleness_.pushed.resize(static_cast<std::size_t>(exchange_.trainers()));
  staleness_.dropped.resize(staleness_.pushed.size());
  offer_first_micro_batches();
}

void AsyncSync::offer_first_micro_batches() {
  next_ = first_micro_batches_ * exchange_.trainers();
  available_.clear();
  if (!is_trainer()) return;
  for (int index = 0; index < first_micro_batches_; ++index) {
    available_.push_back(rank_arrays_.world().rank() * first_micro_batches_ + index);
  }
}

std::optional<TakenMicroBatch> AsyncSync::take_micro_batch() {
  if (available_.empty()) return std::nullopt;
  const int micro_batch = available_.front();
  available_.pop_front();
  return TakenMicroBatch{micro_batch, micro_batch};
}

void AsyncSync::set_learning_rate(double rate) {
  WeightSync::set_learning_rate(rate);
  learning_rate_ = rate;
}

Accumulate AsyncSync::accumulate_metrics() const { return is_first_ ? Accumulate::overwrite : Accumulate::add; }

// After a loss that is not finite, the trainer pushes nothing more: the step's sums end the training.
void AsyncSync::end_micro_batch() {
  is_first_ = false;
  if (!std::isfinite(read_one(store_.device(), store_.metric_slots(ParameterStore::loss_slot)))) {
    available_.clear();
    return;
  }
  rank_status::enter(Phase::reducing);
  const Stopwatch watch;
  const PushAnswer answer =
      exchange_.push(learning_rate_, {store_.gradients(), store_.batch_statistics(), {}}, store_.values());
  store_.device().flat().renew_copies(store_.values());
  cost_.after_backward_ms += watch.milliseconds();
  if (answer.micro_batch) available_.push_back(*answer.micro_batch);
  own_counts_[answer.is_applied ? static_cast<std::size_t>(answer.age) + 1 : 0] += 1;
}

void AsyncSync::contribute_nothing() {
  clear_metrics();
  rank_status::enter(Phase::reducing);
  while (const std::optional<Push> push = exchange_.next()) {
    rank_status::enter(Phase::updating);
    serve(*push);
    rank_status::enter(Phase::reducing);
  }
}

void AsyncSync::serve(const Push& push) {
  exchange_.receive(push, {store_.gradients(), store_.batch_statistics(), {}});
  PushAnswer answer{push.age, is_recent(push)};
  if (answer.is_applied) {
    apply(push);
    if (exchange_.is_first_server()) store_.update_running_statistics(own_record_);
  }
  if (exchange_.is_first_server() && next_ < micro_batches_) answer.micro_batch = next_++;
  exchange_.answer(push, answer, store_.values());
}

// The statistics' sum is what the first server has.
void AsyncSync::sum_gradients() {
  FlatPasses& flat = store_.device().flat();
  if (is_trainer()) exchange_.leave();
  exchange_.is_first_server() ? flat.copy(store_.running(), store_.batch_statistics())
                              : flat.set(store_.batch_statistics(), 0);
  all_reduce_->sum_statistics();
  share_counts();
  offer_first_micro_batches();
  is_first_ = true;
}

void AsyncSync::update() {
  judge(record_);
  store_.device().flat().average(store_.batch_statistics(), 1, store_.running(), record_);
  if (ema_) ema_->follow(record_);
}

// Of a trainer: its counts. Of the first server: how many updates it has made, and the newest gradient's norm.
void AsyncSync::share_counts() {
  Device& device = store_.device();
  std::vector<double> own = own_counts_;
  if (exchange_.is_first_server()) {
    own[0] = read_one(device, own_record_.at(step_applied_steps));
    own[1] = read_one(device, own_record_.at(step_gradient_norm));
  }
  std::vector<double> all(own.size() * static_cast<std::size_t>(rank_arrays_.ranks()));
  rank_arrays_.world().all_gather(own, all);
  const auto trainers = static_cast<std::size_t>(exchange_.trainers());
  const std::span<const double> counts(all);
  std::ranges::fill(staleness_.applied, 0);
  for (std::size_t trainer = 0; trainer < trainers; ++trainer) {
    const auto of_trainer = counts.subspan(trainer * own.size(), own.size());
    staleness_.dropped[trainer] = std::llround(of_trainer[0]);
    staleness_.pushed[trainer] = staleness_.dropped[trainer];
    for (std::size_t age = 0; age < staleness_.applied.size(); ++age) {
      staleness_.applied[age] += std::llround(of_trainer[age + 1]);
      staleness_.pushed[trainer] += std::llround(of_trainer[age + 1]);
    }
  }
  const auto of_server = counts.subspan(trainers * own.size(), own.size());
  server_updates_ = std::llround(of_server[0]);
  device.flat().set(record_.at(step_gradient_norm), static_cast<float>(of_server[1]));
}

}  // namespace lockstep
