#include "train/opening/learner.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "network/onnx/onnx_network.hpp"
#include "optim/update_spec.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "train/pretrained/given_network.hpp"
#include "train/pretrained/whitening.hpp"

namespace lockstep {

namespace {

ModelOptions model_options(const Session& session, const Recipe& recipe, const TrainingData& data,
                           const Checkpoint* earlier) {
  const Manifest& manifest = data.manifest();
  const PictureSize& image = data.test_rules.size;
  ModelOptions options{model_name(recipe),
                       {image.height, image.width, manifest.shape.channels},
                       static_cast<std::int64_t>(manifest.classes.size())};
  options.residual_init = recipe.residual_init;
  options.filter_init = recipe.filter_init;
  if (is_onnx_path(recipe.model)) {
    GivenNetwork given = given_network(recipe, options, manifest, earlier == nullptr ? nullptr : &earlier->model);
    for (const std::string& warning : given.warnings) {
      if (session.world.rank() == 0) log::warning(warning);
    }
    options.network = std::move(given.text);
    options.name = std::filesystem::path(recipe.model).filename();
  }
  return options;
}

OptimizerOptions optimizer_options(const Recipe& recipe, const ModelOptions& model) {
  OptimizerOptions options = recipe.optimizer;
  if (recipe.first_convolution == FirstConvolution::whitened) {
    options.rate_scales.push_back({whitened_weight(model), 0.0F});
  }
  return options;
}

// Backward computes no gradients of weights with a rate of zero.
void freeze_weights(ParameterStore& store, const std::vector<RateScale>& scales) {
  for (Parameter& parameter : store.parameters()) parameter.learns = rate_scale_of(parameter, scales) > 0;
}

// Collective.
std::unique_ptr<Model> build_model(const Session& session, const Recipe& recipe, const TrainingData& data,
                                   const Checkpoint* earlier) {
  std::unique_ptr<Model> model;
  on_all_ranks(session.world, [&] {
    model = std::make_unique<Model>(session.device(), model_options(session, recipe, data, earlier));
    model->store.set_statistics_momentum(recipe.norm_momentum);
    freeze_weights(model->store, optimizer_options(recipe, model->options).rate_scales);
  });
  return model;
}

WeightSyncOptions weight_sync_options(const Recipe& recipe, const RunOptions& run, const TrainingLength& length,
                                      const ModelOptions& model, const RemoteEnd& remote) {
  return {all_reduce_options(recipe, run),
          optimizer_options(recipe, model),
          ema_rule(recipe, length.steps_per_epoch),
          run.sums.shard_optimizer,
          local_updates(recipe),
          async_updates(recipe),
          remote.trainers,
          run.sums.trainers,
          remote.server};
}

}  // namespace

Learner::Learner(const Session& session, const Recipe& recipe, const RunOptions& run, const TrainingData& data,
                 const Checkpoint* earlier, const RemoteEnd& remote)
    : built_model(build_model(session, recipe, data, earlier)),
      model(*built_model),
      sync(make_weight_sync(session, model.store, weight_sync_options(recipe, run, data.length, model.options, remote),
                            data.share.total_micro_batches)),
      norm_group(make_norm_group(session, recipe, data.share, model.store)),
      shared_state(session.device().steps_ahead() == 0 && sync->is_replicated() ? &state_lock : nullptr),
      step(session, model, *sync, data.share, recipe.label_smoothing, norm_group.get(), recipe.seed),
      rank_(session.world.rank()) {
  step.share_state(shared_state);
}

std::vector<ParameterStore::Entry> Learner::weights_to_use() const {
  return is_ema_sharded() ? gathered_ema_ : lockstep::weights_to_use(*sync);
}

void Learner::gather_ema() {
  if (!is_ema_sharded()) return;
  gathered_ema_.clear();
  sync->visit(ema_group, [this](ParameterStore::Entry entry) {
    if (rank_ == 0) gathered_ema_.push_back(std::move(entry));
  });
}

std::string Learner::gradients_text() const {
  return fmt::format("{}, {}", sync->description(), counted(sync->bucket_count(), "bucket"));
}

}  // namespace lockstep
