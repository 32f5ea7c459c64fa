#include "train/training_step.hpp"

#include "nn/initialise.hpp"
#include "nn/loss.hpp"
#include "runtime/failure_report.hpp"
#include "train/noise.hpp"

namespace lockstep {

namespace {

// Takes gradients to nowhere: for a rehearsal that must not reduce.
class NoSync final : public GradientSink {
 public:
  Accumulate accumulate() const override { return Accumulate::overwrite; }
  void ready(const Parameter&) override {}
};

}  // namespace

TrainingStep::TrainingStep(const Session& session, const ModelOptions& model, const LoaderShare& share,
                           const ReducePlan& reduce, const SgdOptions& sgd, float label_smoothing, std::uint64_t seed)
    : session_(session),
      device_(*session.device),
      share_(share),
      label_smoothing_(label_smoothing),
      model_(device_, model) {
  ParameterStore& store = model_.store;
  const std::int64_t count = store.reduced_count();
  reducer_ = make_all_reducer(reduce.reducer, device_, session.world, count * size_of(DType::f32));
  store.allocate(reducer_->allocate(count));
  initialise(store, seed);
  sync_ = std::make_unique<GradientSync>(store, *reducer_, reduce.bucket_bytes);
  sgd_ = std::make_unique<Sgd>(store, sgd);
  if (device_.precision() == DType::f16) scale_loss({});
}

void TrainingStep::scale_loss(const LossScale& state) {
  if (!scaler_) sync_->count_overflow(model_.store);
  scaler_.emplace(state);
}

void TrainingStep::choose_kernels(std::int64_t evaluation_batch) {
  constexpr int measuring_rank = 0;
  if (session_.world.rank() == measuring_rank) rehearse(evaluation_batch);
  device_.ops().import_plan(session_.world.broadcast(device_.ops().export_plan(), measuring_rank));
}

void TrainingStep::rehearse(std::int64_t evaluation_batch) {
  const ModelOptions& model = model_.options;
  NoSync nowhere;
  run_part(noise_batch(device_, model.sample, share_.part_size(), model.classes), nowhere, Accumulate::overwrite);
  const Batch batch = noise_batch(device_, model.sample, evaluation_batch, model.classes);
  model_.network->forward(batch.images, Mode::evaluate);
  device_.synchronize();
}

void TrainingStep::run_part(const Batch& batch, GradientSink& sink, Accumulate accumulate) {
  model_.statistics = {1.0F / static_cast<float>(share_.total_parts), accumulate};
  const Tensor logits = model_.network->forward(batch.images, Mode::train);
  const LossOptions loss{label_smoothing_, loss_scale() / static_cast<float>(share_.global_batch)};
  const Tensor gradient =
      softmax_cross_entropy(device_, logits, batch.labels, loss, loss_sums(model_.store), accumulate);
  model_.network->backward(gradient, sink);
}

Metrics TrainingStep::run(Loader& loader, std::int64_t step, double learning_rate) {
  failure_report::set_step(step);
  for (int part = 0; part < share_.parts; ++part) {
    sync_->begin_part(part, share_.parts);
    run_part(loader.next(), *sync_, sync_->accumulate());
    loader.start_next();
  }
  sync_->finish();
  const float scale = loss_scale();
  const StepSums sums = read_step_sums(model_.store, share_.global_batch, scale);
  require_finite(sums.metrics.loss(), step, learning_rate);
  if (sums.overflow) {
    if (!scaler_->can_shrink()) overflowed_unscaled(step, learning_rate);
    scaler_->record_overflow();
    return sums.metrics;
  }
  sgd_->step(static_cast<float>(learning_rate), 1.0F / scale);
  if (scaler_) scaler_->record_clean_step();
  return sums.metrics;
}

}  // namespace lockstep
