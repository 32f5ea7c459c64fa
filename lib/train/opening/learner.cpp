#include "train/opening/learner.hpp"

#include <fmt/format.h>

#include "base/text/counted.hpp"
#include "step/all_reduce.hpp"

namespace lockstep {

namespace {

ModelOptions model_options(const Recipe& recipe, const Manifest& manifest, const PictureSize& image) {
  ModelOptions options{model_name(recipe),
                       {image.height, image.width, manifest.shape.channels},
                       static_cast<std::int64_t>(manifest.classes.size())};
  options.residual_init = recipe.residual_init;
  return options;
}

std::unique_ptr<Ema> make_ema(ParameterStore& store, const std::optional<EmaRule>& rule) {
  return rule ? std::make_unique<Ema>(store, *rule) : nullptr;
}

}  // namespace

Learner::Learner(const Session& session, const Recipe& recipe, const RunOptions& run, const TrainingData& data)
    : model(session.device(), model_options(recipe, data.manifest(), data.test_rules.size)),
      exchange(make_all_reduce(session, model.store, all_reduce_options(recipe, run), data.share.total_micro_batches)),
      optimizer(make_optimizer(model.store, optimizer_options(recipe.optimizer), recipe.optimizer.clip_norm)),
      ema(make_ema(model.store, ema_rule(recipe, data.length.steps_per_epoch))),
      norm_group(make_norm_group(session, recipe, data.share, model.store)),
      shared_state(session.device().steps_ahead() == 0 ? &state_lock : nullptr),
      step(session, model, *exchange, *optimizer, data.share, recipe.label_smoothing, ema.get(), norm_group.get()) {
  step.share_state(shared_state);
}

std::string Learner::gradients_text() const {
  return fmt::format("{}, {}", exchange->description(), counted(exchange->bucket_count(), "bucket"));
}

}  // namespace lockstep
