#include "step/training_step.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <thread>
#include <utility>

#include "nn/loss.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/rank_status.hpp"
#include "step/kernel_choice.hpp"
#include "step/noise.hpp"

namespace lockstep {

TrainingStep::TrainingStep(const Session& session, Model& model, WeightSync& sync, const LoaderShare& share,
                           float label_smoothing, NormGroup* norm_group, std::uint64_t seed)
    : session_(session),
      device_(session.device()),
      model_(model),
      sync_(sync),
      norm_group_(norm_group),
      share_(share),
      label_smoothing_(label_smoothing),
      seed_(seed),
      failure_(session.world) {
  discard_graphs();
}

void TrainingStep::discard_graphs() {
  assert(in_flight_.empty());
  for (std::unique_ptr<CapturedGraph>& graph : micro_batch_graphs_) graph = device_.make_captured_graph();
  update_graph_ = device_.make_captured_graph();
}

void TrainingStep::choose_kernels(const std::vector<std::int64_t>& evaluation_batches,
                                  const std::vector<SampleShape>& micro_batches) {
  plan_use_ = lockstep::choose_kernels(session_, [&] {
    warm_up_kernels(evaluation_batches, micro_batches.empty() ? std::vector{model_.options.sample} : micro_batches);
  });
}

void TrainingStep::warm_up_kernels(const std::vector<std::int64_t>& evaluation_batches,
                                   const std::vector<SampleShape>& micro_batches) {
  const ModelOptions& model = model_.options;
  DiscardGradients nowhere;
  for (const SampleShape& micro_batch : micro_batches) {
    run_micro_batch(noise_batch(device_, micro_batch, share_.micro_batch_size(), model.classes), nowhere,
                    Accumulate::overwrite);
  }
  for (const std::int64_t samples : evaluation_batches) {
    const Batch batch = noise_batch(device_, model.sample, samples, model.classes);
    model_.network->forward(batch.images, Mode::evaluate);
  }
}

// Of the micro-batches whose mean is one update.
std::int64_t TrainingStep::micro_batches_per_update() const {
  return sync_.updates_own_weights() ? 1 : share_.total_micro_batches;
}

std::int64_t TrainingStep::samples_per_update() const { return micro_batches_per_update() * share_.micro_batch_size(); }

void TrainingStep::run_micro_batch(const Batch& batch, GradientSink& sink, Accumulate metrics) {
  rank_status::enter(Phase::forward);
  model_.statistics = {1.0F / static_cast<float>(micro_batches_per_update()), sink.accumulate(), norm_group_};
  const Tensor logits = model_.network->forward(batch.images, Mode::train);
  const LossOptions loss{label_smoothing_, 1.0F / static_cast<float>(samples_per_update()),
                         sync_.record().at(step_loss_scale)};
  const Tensor gradient = softmax_cross_entropy(device_, logits, {batch.labels, batch.others, batch.shares}, loss,
                                                loss_sums(model_.store), metrics);
  rank_status::enter(Phase::backward);
  model_.network->backward(gradient, sink);
}

void TrainingStep::start(Loader& loader, std::int64_t step, std::span<const double> learning_rates) {
  assert(steps_in_flight() <= device_.steps_ahead());
  failure_report::set_step(step);
  rank_status::set_step(step);
  sync_.begin_step(step);
  sync_.set_learning_rate(learning_rates.front());
  if (state_ != nullptr) state_->let_go();
  sync_.hands_out_micro_batches() ? run_taken(loader, step, learning_rates) : run_share(loader, step, learning_rates);
  if (share_.micro_batches == 0) join_step();
  if (sync_.needs_host()) {
    sync_.sum_gradients();
    update_graph_->run([this] { update(); });
    sync_.share_weights();
  }
  in_flight_.push_back({step, learning_rates.back(), spare_readback()});
  in_flight_.back().record->start(sync_.record().all());
}

void TrainingStep::run_share(Loader& loader, std::int64_t step, std::span<const double> learning_rates) {
  for (int micro_batch = 0; micro_batch < share_.micro_batches; ++micro_batch) {
    const Batch* const batch = next_batch(loader);
    const auto update = static_cast<std::size_t>(micro_batch);
    if (update > 0 && update < learning_rates.size()) sync_.set_learning_rate(learning_rates[update]);
    draw_dropout(step, share_.first_micro_batch + micro_batch);
    queue_micro_batch(batch, micro_batch);
    attempt([&] { loader.start_next(); });
  }
}

// One micro-batch is loaded while another one is computed.
void TrainingStep::run_taken(Loader& loader, std::int64_t step, std::span<const double> learning_rates) {
  if (share_.micro_batches == 0) return;
  std::deque<TakenMicroBatch> loading;
  const auto take = [&] {
    const std::optional<TakenMicroBatch> taken = sync_.take_micro_batch();
    if (!taken) return;
    loading.push_back(*taken);
    loader.request(step * share_.total_micro_batches + taken->micro_batch);
  };
  take();
  take();
  while (!loading.empty() && !failure_.has_failed()) {
    const auto [micro_batch, update] = loading.front();
    loading.pop_front();
    const Batch* const batch = next_batch(loader);
    sync_.set_learning_rate(learning_rates[std::min(static_cast<std::size_t>(update), learning_rates.size() - 1)]);
    draw_dropout(step, micro_batch);
    GradientSink& sink = sync_.begin_micro_batch(micro_batch, share_.total_micro_batches);
    attempt([&] { run_micro_batch(*batch, sink, sync_.accumulate_metrics()); });
    if (failure_.has_failed()) break;
    sync_.end_micro_batch();
    take();
  }
  if (failure_.has_failed()) sync_.give_up_micro_batch();
  sync_.sum_gradients();
  update();
  sync_.share_weights();
}

// Null if this rank has failed.
const Batch* TrainingStep::next_batch(Loader& loader) {
  const Batch* batch = nullptr;
  attempt([&] {
    rank_status::enter(Phase::reading);
    batch = &loader.next();
  });
  return batch;
}

// Of a rank without samples.
void TrainingStep::join_step() {
  sync_.begin_micro_batch(0, 1);
  failure_.has_failed() ? sync_.give_up_micro_batch() : sync_.contribute_nothing();
  if (sync_.needs_host()) return;
  sync_.sum_gradients();
  update();
  sync_.share_weights();
}

// `micro_batch`: of the step's, over all ranks.
void TrainingStep::draw_dropout(std::int64_t step, int micro_batch) {
  model_.network->draw_dropout(seed_, step, micro_batch * share_.micro_batch_size());
}

// `batch` is null if this rank has failed.
void TrainingStep::queue_micro_batch(const Batch* batch, int micro_batch) {
  const bool is_last = micro_batch + 1 == share_.micro_batches;
  const MicroBatchKind kind = is_last ? last_micro_batch : micro_batch == 0 ? first_micro_batch : middle_micro_batch;
  micro_batch_graphs_[kind]->run([&] {
    GradientSink& sink = sync_.begin_micro_batch(micro_batch, share_.micro_batches);
    attempt([&] { run_micro_batch(*batch, sink, sync_.accumulate_metrics()); });
    if (failure_.has_failed()) sync_.give_up_micro_batch();
    sync_.end_micro_batch();
    if (!is_last || sync_.needs_host()) return;
    sync_.sum_gradients();
    update();
    sync_.share_weights();
  });
}

// Other devices may have queued part of the work, and a norm group waits for this rank within it.
void TrainingStep::attempt(const std::function<void()>& work) {
  const bool is_contained = device_.steps_ahead() == 0 && norm_group_ == nullptr;
  is_contained ? failure_.run(work) : work();
}

void TrainingStep::update() {
  if (state_ != nullptr) state_->hold();
  rank_status::enter(Phase::updating);
  sync_.update();
}

std::unique_ptr<Readback> TrainingStep::spare_readback() {
  if (spare_.empty()) return device_.make_readback(sync_.record().count());
  std::unique_ptr<Readback> readback = std::move(spare_.back());
  spare_.pop_back();
  return readback;
}

StepResult TrainingStep::finish() {
  assert(!in_flight_.empty());
  StepInFlight oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (!oldest.record->has_arrived()) rank_status::enter(Phase::reducing);
  while (!oldest.record->has_arrived()) {
    sync_.check();  // after a failed reduction no data arrives
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  const std::span<const float> values = oldest.record->values();
  const std::span<const float> metric_slots = values.subspan(step_metric_slots);
  if (metric_slots[ParameterStore::failure_slot] != 0) failure_.agree(Phase::gathering);
  const Metrics metrics = step_metrics(metric_slots, samples_per_update(), share_.global_batch);
  const auto verdict = static_cast<StepVerdict>(static_cast<std::uint8_t>(values[step_verdict]));
  StepResult result{oldest.step,
                    oldest.learning_rate,
                    metrics,
                    verdict == StepVerdict::overflowed,
                    static_cast<double>(values[step_loss_scale]),
                    static_cast<double>(values[step_gradient_norm]),
                    metric_slots[ParameterStore::stop_slot] != 0,
                    {}};
  if (verdict == StepVerdict::not_finite) {
    result.divergence = diverged_loss_message(metrics.loss(), oldest.step, oldest.learning_rate);
  } else if (verdict == StepVerdict::overflowed_unscaled) {
    result.divergence = overflow_message(oldest.step, oldest.learning_rate);
  }
  spare_.push_back(std::move(oldest.record));
  return result;
}

StepResult TrainingStep::run(Loader& loader, std::int64_t step, double learning_rate) {
  start(loader, step, learning_rate);
  return finish();
}

}  // namespace lockstep
