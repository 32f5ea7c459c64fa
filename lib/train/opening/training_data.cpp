#include "train/opening/training_data.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "comm/server_all_reducer.hpp"
#include "dataset/same_data.hpp"
#include "dataset/split.hpp"
#include "dataset/staging/stage.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "train/evaluation/model_fit.hpp"
#include "train/opening/resume_rules.hpp"
#include "train/rank_places.hpp"

namespace lockstep {

namespace {

TrainingLength training_length(const Recipe& recipe, const RunOptions& run, const Manifest& train,
                               const LoaderShare& share) {
  require(recipe.epochs.value >= 1, Failure::usage, "--epochs is {}. Set it to 1 or more.", recipe.epochs.value);
  const std::int64_t steps = train.samples() / share.global_batch;
  require(steps >= 1 || share.updates == 1, Failure::usage,
          "a step of {} updates takes {} samples, but the training set has {}. Lower --local-steps or the batch.",
          share.updates, share.global_batch, train.samples());
  require(
      steps >= 1, Failure::usage,
      "the global batch of {} samples is larger than the training set of {} samples. Lower {}.", share.global_batch,
      train.samples(),
      recipe.batch.global_batch ? fmt::format("--global-batch to {} at most", train.samples()) : "--batch-per-rank");
  const std::int64_t all =
      std::min(schedule_steps(recipe, steps), recipe.max_steps.value_or(schedule_steps(recipe, steps)));
  return {(all + steps - 1) / steps, steps, recipe.max_steps, run.test_every};
}

LrSchedule schedule_of(const Recipe& recipe, const LoaderShare& share, const TrainingLength& length) {
  return {recipe.learning_rate, share.update_batch(), schedule_steps(recipe, length.steps_per_epoch) * share.updates,
          length.steps_per_epoch * share.updates};
}

// Collective. Folders to read the data from: the original ones, or staged copies. Staging is slow, so errors of the
// recipe are reported first.
SplitFolders data_folders(const Communicator& world, const RunOptions& run, const Recipe& recipe,
                          const LoaderShare& share, const StopAgreement& stops) {
  const SplitFolders from = split_folders(run.data);
  if (run.stage.empty()) return from;
  on_all_ranks(world, [&] {
    schedule_of(recipe, share, training_length(recipe, run, read_manifest(from.of(Split::train)), share));
  });
  return stage(world, {from, {Split::train, Split::validation, Split::test}, run.stage},
               [&] { stops.end_start_if_asked("the staged data are kept. The same command starts again."); });
}

// The number of ranks that have samples.
int trainers_in(const Recipe& recipe, const RunOptions& run, const Communicator& world) {
  return run.sums.trainers > 0 ? run.sums.trainers : require_trainers(world.size(), servers_of({recipe, run}));
}

// Among those that share the samples: trainers come before servers.
struct Place {
  int rank;
  int ranks;
};
// Of trainers that are programs of their own, any may take any micro-batch, so all have the place of the first one.
Place place_of(const RunOptions& run, const Communicator& world, int trainers) {
  if (run.sums.trainers == 0) return {world.rank(), world.size()};
  return {run.trainer_of.empty() ? trainers : 0, trainers + 1};
}

// Reads the data.
LoaderShare share_of(const Recipe& recipe, const RunOptions& run, const Checkpoint* earlier,
                     const Communicator& world) {
  const int trainers = trainers_in(recipe, run, world);
  const Place place = place_of(run, world, trainers);
  const auto share = [&](const BatchOptions& batch) {
    LoaderShare of_rank = loader_share(batch, place.rank, place.ranks, place.ranks - trainers);
    if (recipe.sync == Sync::async_servers) of_rank.updates = of_rank.total_micro_batches;
    return of_rank;
  };
  if (earlier != nullptr)
    return share(
        batch_of_resumed(recipe.batch, earlier->state.recipe, trainers, name_of_trainer(trainers, place.ranks)));
  const bool is_chosen = recipe.batch.global_batch && recipe.batch.global_batch->by == ChosenBy::program;
  if (!is_chosen) return share(recipe.batch);
  const Manifest data = read_manifest(split_folders(run.data).of(Split::train));
  return share(fit_global_batch(recipe.batch, trainers, data.samples()));
}

// Null if there is no such folder. Both splits must have the same classes, and the same normalization is used for both.
std::unique_ptr<Dataset> open_tested(const SplitFolders& folders, const std::filesystem::path& data, Split split,
                                     const Manifest& train) {
  if (split == Split::validation && is_absent(folders.of(split))) return nullptr;
  auto opened = std::make_unique<Dataset>(folders.of(split));
  require(train.classes == opened->manifest().classes && train.shape == opened->manifest().shape, Failure::bad_data,
          "'{}' and '{}' have different classes or image sizes. Accuracy on one says nothing about the other. Create "
          "both with one run of make_shards.",
          split_folder(data, Split::train).string(), split_folder(data, split).string());
  normalize_as_trained(*opened, train.mean, train.deviation);
  return opened;
}

TrainingData open_splits(const Recipe& recipe, const RunOptions& run, const LoaderShare& share, int trainers,
                         const SplitFolders& folders) {
  auto train = std::make_unique<Dataset>(folders.of(Split::train));
  const Manifest& manifest = train->manifest();
  const TrainingLength length = training_length(recipe, run, manifest, share);
  const ImageRules rules = test_rules(recipe.images, manifest);
  LrSchedule schedule = schedule_of(recipe, share, length);
  auto test = open_tested(folders, run.data, Split::test, manifest);
  auto validation = open_tested(folders, run.data, Split::validation, manifest);
  require(!recipe.early_stop || recipe.early_stop->split == Split::test || validation != nullptr, Failure::usage,
          "--early-stop {} needs a validation split, but '{}' has none. Use test-accuracy or test-loss, or create the "
          "split with make_shards --validation.",
          recipe.early_stop ? early_stop_text(*recipe.early_stop) : "", run.data.string());
  return {share, trainers, std::move(train),   std::move(test), std::move(validation),
          rules, length,   std::move(schedule)};
}

}  // namespace

std::vector<double> TrainingData::rates(std::int64_t step) const {
  std::vector<double> rates;
  for (int update = 0; update < share.updates; ++update) rates.push_back(schedule.at(step * share.updates + update));
  return rates;
}

TrainingData open_data(const Communicator& world, const Recipe& recipe, const RunOptions& run,
                       const Checkpoint* earlier, const StopAgreement& stops) {
  require_same_data(world, run.data);
  LoaderShare share;
  on_all_ranks(world, [&] { share = share_of(recipe, run, earlier, world); });
  const SplitFolders folders = data_folders(world, run, recipe, share, stops);
  std::optional<TrainingData> data;
  on_all_ranks(world, [&] { data = open_splits(recipe, run, share, trainers_in(recipe, run, world), folders); });
  return *std::move(data);
}

}  // namespace lockstep
