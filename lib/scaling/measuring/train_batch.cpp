#include "scaling/measuring/train_batch.hpp"

#include <fmt/format.h>

#include "dataset/split.hpp"
#include "train/train.hpp"

namespace lockstep {
namespace {

// The default recipe for CIFAR-10.
Recipe short_recipe(const AccuracySettings& settings, const BatchAccuracy& batch) {
  Recipe recipe = settings.training.recipe;
  recipe.epochs = {settings.epochs};
  recipe.seed = batch.accuracies.size();
  recipe.batch.global_batch = {batch.global_batch};
  recipe.learning_rate.rate = settings.rate;
  recipe.learning_rate.base_batch = 128;
  recipe.learning_rate.schedule = Schedule::one_cycle;
  return recipe;
}

}  // namespace

void train_seed(const Communicator& world, const AccuracySettings& settings, BatchAccuracy& batch) {
  const std::int64_t samples = read_manifest(split_folder(settings.training.run.data, Split::train)).samples();
  if (batch.global_batch % world.size() != 0) {
    batch.missing = fmt::format("it is not divisible by {} ranks", world.size());
  } else if (batch.global_batch > samples) {
    batch.missing = fmt::format("the data set has only {} samples", samples);
  } else {
    Session session{world, open_backend(settings.device)};
    session.plan_folder = settings.device.plan_folder;
    session.label = fmt::format("batch {}, seed {}", batch.global_batch, batch.accuracies.size());
    const TrainingOutcome outcome =
        train(session, ValidSettings({short_recipe(settings, batch), settings.training.run}));
    if (outcome.end == End::done) {
      batch.accuracies.push_back(outcome.test_accuracy);
      batch.missing.clear();
    } else {
      batch.missing = "its training diverged";
    }
  }
}

}  // namespace lockstep
