#include "train/trainer.hpp"

#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "dataset/load_onto.hpp"
#include "runtime/rank_status.hpp"
#include "runtime/versions.hpp"
#include "train/model_file.hpp"

namespace lockstep {

namespace {

TrainingLength training_length(const Recipe& recipe, const Dataset& train, std::int64_t global_batch) {
  require(recipe.epochs >= 1, Failure::usage, "--epochs is {}. Train at least one epoch.", recipe.epochs);
  const std::int64_t steps = train.samples() / global_batch;
  require(steps >= 1, Failure::usage, "a global batch of {} samples is larger than the training set of {}. Lower {}.",
          global_batch, train.samples(), recipe.batch.global_batch ? "--global-batch" : "--batch-per-rank");
  return {recipe.epochs, steps};
}

ModelOptions model_options(const Recipe& recipe, const Manifest& manifest) {
  return {recipe.model, manifest.shape, static_cast<std::int64_t>(manifest.classes.size())};
}

ReducePlan reduce_plan(const Recipe& recipe) {
  ReducePlan plan = recipe.reduce;
  if (!recipe.batch.virtual_ranks) return plan;
  require(plan.wire == DType::f32, Failure::usage,
          "--virtual-ranks sums gradients exactly, --wire {} rounds them. Leave out one of the two.",
          precision_name(plan.wire));
  plan.sums = Sums::exact;
  return plan;
}

// What is learned on one split must mean the same on the other.
void require_same_labels(const Recipe& recipe, const Manifest& train, const Manifest& test) {
  require(
      train.classes == test.classes && train.shape == test.shape, Failure::bad_data,
      "'{}' and '{}' have different classes or picture sizes (a test would mean nothing). Make both with one run of "
      "make_shards.",
      (recipe.data / "train").string(), (recipe.data / "test").string());
}

std::int64_t skipped_steps(const TrainingStep& step) {
  return std::llround(step.loss_scale().value_or(LossScale{}).skipped_steps);
}

}  // namespace

Trainer::Trainer(const Session& session, Recipe recipe)
    : session_(session),
      recipe_(std::move(recipe)),
      share_(loader_share(recipe_.batch, session.world.rank(), session.world.size())),
      train_(recipe_.data / "train"),
      test_(recipe_.data / "test"),
      length_(training_length(recipe_, train_, share_.global_batch)),
      schedule_(make_schedule(recipe_.learning_rate, share_.global_batch, length_.epochs, length_.steps_per_epoch)),
      reporter_(session.world.rank(), recipe_.output, length_, recipe_.report_every),
      step_(session, model_options(recipe_, train_.manifest()), share_, reduce_plan(recipe_), recipe_.sgd,
            recipe_.label_smoothing, recipe_.seed),
      evaluator_(session.world, step_.model(), test_, recipe_.loader_threads, recipe_.data_place) {
  require_same_labels(recipe_, train_.manifest(), test_.manifest());
  describe();
  step_.choose_kernels(evaluation_batch);
}

void Trainer::describe() const {
  const Manifest& data = train_.manifest();
  const LearningRate& rate = recipe_.learning_rate;
  log::info("data: {} ({}), {} training and {} test samples of {} classes", data.name, data.source, train_.samples(),
            test_.samples(), data.classes.size());
  log::info("model: {}, {} parameters, on {}", recipe_.model, step_.model().store.parameter_count(),
            session_.device->description());
  if (recipe_.batch.virtual_ranks) {
    log::info("batch: {} in all (virtual ranks: {} of {}, on {} {}); {} steps an epoch", share_.global_batch,
              share_.total_parts, share_.part_size(), session_.world.size(),
              session_.world.size() == 1 ? "rank" : "ranks", length_.steps_per_epoch);
  } else {
    log::info("batch: {} per rank, {} in all (ranks: {}, parts each: {}); {} steps an epoch",
              share_.part_size() * share_.parts, share_.global_batch, session_.world.size(), share_.parts,
              length_.steps_per_epoch);
  }
  const double scaled = scaled_rate(rate, share_.global_batch);
  log::info("learning rate: {:.4g} for a batch of {}, {:.4g} for the global batch of {}", rate.rate,
            rate.base_batch == 0 ? share_.global_batch : rate.base_batch, scaled, share_.global_batch);
  const std::size_t buckets = step_.sync().bucket_count();
  log::info("gradients: {}, {} bucket{}", step_.reducer_description(), buckets, buckets == 1 ? "" : "s");
}

void Trainer::fit() {
  const Augmentation augmentation = recipe_.augmentation.value_or(default_augmentation(train_.manifest().kind));
  const std::unique_ptr<Loader> loader = load_onto(
      *session_.device, training_source(train_, share_, augmentation, recipe_.seed, 0, 0, recipe_.loader_threads),
      recipe_.data_place);
  reporter_.start();
  Evaluation last;
  for (std::int64_t epoch = 0; epoch < length_.epochs; ++epoch) {
    train_epoch(*loader, epoch);
    last = test(epoch);
  }
  save(last);
}

void Trainer::train_epoch(Loader& loader, std::int64_t epoch) {
  for (std::int64_t index = 0; index < length_.steps_per_epoch; ++index) {
    const std::int64_t step = epoch * length_.steps_per_epoch + index;
    step_.start(loader, step, schedule_.at(step));
    report(loader, session_.device->steps_ahead());
  }
  report(loader, 0);
}

void Trainer::report(const Loader& loader, int steps_left_under_way) {
  while (step_.steps_under_way() > steps_left_under_way) {
    const StepResult result = step_.finish();
    const Position position{result.step / length_.steps_per_epoch, result.step};
    reporter_.step(position, result.metrics, result.learning_rate, loader.waited_ms());
    if (result.skipped) reporter_.skipped(position, result.loss_scale);
  }
}

Evaluation Trainer::test(std::int64_t epoch) {
  const Stopwatch watch;
  Evaluation evaluation = evaluator_.evaluate();
  reporter_.test({epoch, (epoch + 1) * length_.steps_per_epoch - 1}, evaluation, watch.seconds());
  return evaluation;
}

void Trainer::save(const Evaluation& last) {
  if (session_.world.rank() != 0) return;
  rank_status::enter(Phase::saving);
  const Manifest& data = train_.manifest();
  const ParameterStore& store = step_.model().store;
  const std::string hash = store.weights_hash();
  if (!recipe_.output.empty()) {
    write_model_file(recipe_.output / "model.h5",
                     {recipe_.model, data.classes, data.shape, data.mean, data.deviation, store.entries()});
  }
  reporter_.finish(summary(last, hash));
  log::info("test accuracy {:.2f} %  ({:.0f} samples/s, {} in all, weights {})", 100 * last.accuracy(),
            reporter_.samples_per_second(), duration_words(watch_.seconds()), hash);
}

nlohmann::json Trainer::summary(const Evaluation& last, const std::string& weights_hash) const {
  nlohmann::json versions;
  for (const LibraryVersion& library : library_versions()) versions[library.name] = library.version;
  return {{"test_accuracy", last.accuracy()},
          {"test_loss", last.loss()},
          {"samples_per_second", reporter_.samples_per_second()},
          {"steps", length_.steps()},
          {"epochs", length_.epochs},
          {"ranks", session_.world.size()},
          {"global_batch", share_.global_batch},
          {"parts_per_rank", share_.parts},
          {"virtual_ranks", recipe_.batch.virtual_ranks ? nlohmann::json(*recipe_.batch.virtual_ranks) : nullptr},
          {"seed", recipe_.seed},
          {"weights_hash", weights_hash},
          {"seconds", watch_.seconds()},
          {"training_seconds", reporter_.training_seconds()},
          {"model", recipe_.model},
          {"parameters", step_.model().store.parameter_count()},
          {"data", train_.manifest().name},
          {"data_hash", train_.manifest().root_hash},
          {"device", session_.device->description()},
          {"precision", precision_name(session_.device->precision())},
          {"skipped_steps", skipped_steps(step_)},
          {"versions", versions},
          {"kernels_recalled", step_.plan_use().recalled},
          {"kernels_measured", step_.plan_use().measured},
          {"reducer", step_.reducer_description()},
          {"sync_ms_within_backward", step_.sync().cost().within_backward_ms},
          {"sync_ms_after_backward", step_.sync().cost().after_backward_ms}};
}

}  // namespace lockstep
