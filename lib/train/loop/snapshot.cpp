#include "train/loop/snapshot.hpp"

#include <utility>
#include <vector>

#include "train/opening/resume_rules.hpp"

namespace lockstep {

namespace {

ModelFile model_with(const OpenedTraining& training, std::vector<ParameterStore::Entry> weights) {
  const Manifest& data = training.data->manifest();
  const ModelOptions& model = training.learner->model.options;
  return {model.name,
          data.classes,
          model.sample,
          data.mean,
          data.deviation,
          std::move(weights),
          training.data->test_rules.shorter_side.value_or(0),
          {},
          data.sample_bits,
          model.network};
}

}  // namespace

ModelFile model_of(const OpenedTraining& training, std::int64_t steps) {
  ModelFile model = model_with(training, training.learner->weights_to_use());
  model.step = steps;
  return model;
}

Checkpoint checkpoint_of(const OpenedTraining& training, const TrainingProgress& progress,
                         const TrainingCounters& counters) {
  const Learner& learner = *training.learner;
  TrainingTensors tensors = learner.sync->is_replicated() ? tensors_of(*learner.sync) : TrainingTensors();
  Checkpoint checkpoint{model_with(training, std::move(tensors.weights)),
                        std::move(tensors.optimizer),
                        {progress,
                         counters.state(),
                         learner.sync->loss_scale(),
                         training.fixed_recipe,
                         this_origin(training.session, training.data->trainers, learner.gradients_text()),
                         training.session.device().ops().export_plan(),
                         {}}};
  checkpoint.ema = std::move(tensors.ema);
  checkpoint.state.own_updates = learner.sync->own_updates();
  checkpoint.note = training.run.note;
  checkpoint.tags = training.run.tags;
  checkpoint.state.progress.epoch = progress.step / training.data->length.steps_per_epoch;
  checkpoint.state.progress.samples = progress.step * training.data->share.global_batch;
  return checkpoint;
}

}  // namespace lockstep
