#include "train/opening/opened_training.hpp"

#include <cmath>
#include <filesystem>
#include <functional>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "dataset/shards/hash.hpp"
#include "files/model_file.hpp"
#include "nn/conv_norm_act.hpp"
#include "run/run_file.hpp"
#include "run/training_status.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "train/evaluation/model_fit.hpp"
#include "train/observers/early_stopping.hpp"
#include "train/opening/description.hpp"
#include "train/opening/resume_rules.hpp"
#include "train/pretrained/initial_weights.hpp"
#include "train/remote/remote_training.hpp"
#include "train/run_summary.hpp"

namespace lockstep {

namespace {

// The default checkpoint folder is inside the output folder.
RunOptions with_checkpoint_folder(RunOptions run) {
  CheckpointOptions& plan = run.checkpoints;
  if (plan.folder.empty() && !run.output.empty()) plan.folder = run.output / run_files::checkpoints;
  return run;
}

// Throws Error(usage) if the results would lie among the shards.
void require_apart_from_data(const RunOptions& run) {
  std::vector<std::filesystem::path> places = {run.data};
  for (const Choice<Split>& split : splits) places.push_back(split_folder(run.data, split.value));
  for (const auto& [option, folder] : {std::pair("--output", run.output), {"--checkpoints", run.checkpoints.folder}}) {
    for (const std::filesystem::path& place : places) {
      std::error_code error;
      require(!std::filesystem::equivalent(folder, place, error), Failure::usage,
              "{} '{}' is a folder of the training data. Name another folder.", option, folder.string());
    }
  }
}

// Throws Error(usage) if the training does not match the state to resume from.
void require_resumable(const OpenedTraining& training) {
  if (training.earlier() == nullptr) return;
  const std::filesystem::path& output = training.run.output;
  const bool has_model = training.checkpoints->continues() && !output.empty() && !is_absent(output / best_model_file);
  require_same_recipe(training.earlier()->recipe, training.fixed_recipe,
                      has_model ? output : training.checkpoints->found_in());
  const TrainingLength& length = training.data->length;
  require(training.progress().step <= length.steps(), Failure::usage, "the checkpoint is from step {}, but {}.",
          training.progress().step,
          training.recipe.max_steps == length.steps()
              ? fmt::format("--max-steps is {}. Raise --max-steps", *training.recipe.max_steps)
              : fmt::format("--epochs {} ends at step {}. Raise --epochs", length.epochs, length.steps()));
}

std::vector<TestedSplit> open_tests(const Session& session, const RunOptions& run, const TrainingData& data,
                                    Model& model) {
  std::vector<TestedSplit> tests;
  for (const auto& [split, opened] :
       {std::pair(Split::test, data.test.get()), {Split::validation, data.validation.get()}}) {
    if (opened == nullptr) continue;
    tests.push_back({split, *opened,
                     std::make_unique<Evaluator>(session.world, *session.backend, model, *opened, data.test_rules,
                                                 run.loader_threads, run.data_place, run.test_time_augmentation)});
  }
  return tests;
}

// Hash of the canonical path of a folder; empty if `folder` is empty.
std::string folder_hash(const std::filesystem::path& folder) {
  if (folder.empty()) return "";
  const std::string path = std::filesystem::weakly_canonical(std::filesystem::absolute(folder));
  return xxh3_64_hex(std::as_bytes(std::span(path)));
}

// Whether the earlier attempt of the training in `output` wrote its events to this folder. The owner of the events is
// unknown if the output folder has been moved since.
bool wrote_events_to(const std::filesystem::path& events, const std::filesystem::path& output) {
  const std::optional<Summary> earlier = output.empty() ? std::nullopt : read_summary(output);
  if (!earlier) return false;
  const std::string named = text_in(earlier->fields.value("run", nlohmann::json()), "tensorboard");
  return !named.empty() && folder_hash(present_place(named, *earlier, output)) == folder_hash(events);
}

// On rank 0. Null if no events are requested.
std::unique_ptr<EventLog> open_events(const OpenedTraining& training) {
  const RunOptions& run = training.run;
  if (run.tensorboard.empty() || training.session.world.rank() != 0) return nullptr;
  auto events = std::make_unique<EventLog>(run.tensorboard, event_texts(training),
                                           folder_hash(run.output.empty() ? run.checkpoints.folder : run.output));
  const bool goes_on = training.checkpoints->continues() && wrote_events_to(run.tensorboard, run.output);
  if (!goes_on) events->require_own_folder();
  return events;
}

// Collective. From the checkpoint, or initial weights.
void load_weights(const OpenedTraining& training) {
  const Session& session = training.session;
  Learner& learner = *training.learner;
  const Checkpoint* const found = training.checkpoints->found();
  if (found == nullptr) {
    begin_weights(session.world, training.recipe, *training.data->train, training.data->test_rules, learner.model);
    learner.sync->begin();
    learner.gather_ema();
    return;
  }
  const TrainingState& state = found->state;
  on_all_ranks(session.world, [&] { learner.sync->assign({found->model.entries, found->optimizer, found->ema}); });
  learner.gather_ema();
  if (state.loss_scale) learner.sync->scale_loss(*state.loss_scale);
  const float skipped = state.loss_scale.value_or(LossScale{}).skipped_steps;
  learner.sync->set_applied_steps(state.progress.step - std::llround(skipped));
  if (!state.own_updates.empty()) {
    on_all_ranks(session.world, [&] { learner.sync->set_own_updates(state.own_updates); });
  }
  const Origin now = this_origin(session, training.data->trainers, learner.gradients_text());
  const Sums sums = sums_of(training.recipe);
  const std::string difference = origin_difference(state.origin, now, sums);
  if (!difference.empty() && training.steps_left() > 0 && session.world.rank() == 0) {
    log::warning(
        "the environment has changed since the checkpoint: {}. The training continues, but is not bitwise identical.{}",
        difference,
        training.recipe.sync == Sync::local || training.recipe.sync == Sync::async_servers ||
                training.recipe.powersgd_rank > 0
            ? ""
            : same_bits_advice(state.origin, now, sums));
  }
  if (state.origin.plan_conditions == now.plan_conditions) session.device().ops().import_plan(state.kernel_plan);
  training.checkpoints->forget_tensors();
}

// Collective. Whether all steps and the last tests are done, and the output folder has the results. Then nothing is
// written, because a new summary would describe an attempt that did nothing.
bool is_left_whole(const OpenedTraining& training) {
  const TrainingProgress progress = training.progress();
  const std::filesystem::path& output = training.run.output;
  const Communicator& world = training.session.world;
  bool is_whole = false;
  on_rank_0(world, [&] {
    is_whole = training.steps_left() == 0 && progress.tested_step == progress.step;
    if (!is_whole || training.output == nullptr) return;
    const std::optional<Summary> summary = read_summary(output);
    is_whole = summary && summary->state == RunState::done &&
               summary->weights_hash == weights_hash(training.learner->weights_to_use()) &&
               !is_absent(output / "model.h5");
  });
  return world.max(is_whole ? 1 : 0) > 0;
}

// Before anything is written: layers refuse it too, but in the first step.
void require_variances(const ModelOptions& model, std::int64_t samples) {
  const NetworkGraph graph = model_graph(model);
  for (const GraphNode& node : graph.nodes()) {
    if (node.as<op::BatchNorm>() == nullptr) continue;
    require_variance(samples * node.shape.height * node.shape.width, node.name + ".weight");
  }
}

// Collective. For all image sizes of training and tests.
void choose_kernels(const OpenedTraining& training) {
  Learner& learner = *training.learner;
  const ModelOptions& model = learner.model.options;
  const std::int64_t ranks = learner.norm_group == nullptr ? 1 : learner.norm_group->size();
  std::vector<SampleShape> shapes;
  on_all_ranks(training.session.world, [&] {
    for (const PictureSize& size :
         training_sizes(training.recipe.images, training.data->manifest(), training.data->length.epochs)) {
      require_takes(model, size.height, size.width);
      shapes.push_back({size.height, size.width, model.sample.channels});
      ModelOptions sized = model;
      sized.sample = shapes.back();
      require_variances(sized, ranks * training.data->share.micro_batch_size());
    }
  });
  std::vector<std::int64_t> evaluation_batches;
  for (const TestedSplit& test : training.tests) evaluation_batches.push_back(test.evaluator->batch());
  learner.step.choose_kernels(evaluation_batches, shapes);
}

}  // namespace

const TrainingState* OpenedTraining::earlier() const {
  return checkpoints->found() == nullptr ? nullptr : &checkpoints->found()->state;
}

std::int64_t OpenedTraining::steps_left() const {
  const bool is_over = recipe.early_stop && earlier() != nullptr && is_stopped_early(*recipe.early_stop, *earlier());
  return is_over ? 0 : data->length.steps() - progress().step;
}

void OpenedTraining::stop_if_asked() const {
  scope->stops.end_start_if_asked(
      earlier() == nullptr
          ? "nothing was started. The same command starts it."
          : fmt::format("the checkpoint of step {} is kept. The same command resumes from it.", progress().step));
}

OpenedTraining open_training(const Session& session, const ValidSettings& settings) {
  const Communicator& world = session.world;
  OpenedTraining training{session, std::make_unique<TrainingScope>(session, settings.run().time_limit_seconds),
                          settings.recipe(), with_checkpoint_folder(settings.run())};
  const StopAgreement& stops = training.scope->stops;
  // Needs no data: before the data are opened and before a folder is created.
  on_rank_0(world, [&] { require_apart_from_data(training.run); });
  require_initial_weights(world, training.recipe.init, training.run.checkpoints);
  training.output = take_output_folder(world, stops, training.run.output);
  if (!training.run.trace.empty()) training.trace = std::make_unique<Trace>(world, training.run.trace, log::host());
  training.checkpoints = std::make_unique<Checkpointing>(world, training.run.checkpoints, training.output, stops);
  training.data = std::make_unique<TrainingData>(
      open_data(world, training.recipe, training.run, training.checkpoints->found(), stops));
  training.stop_if_asked();
  const Manifest& manifest = training.data->manifest();
  on_all_ranks(world, [&] {
    training.fixed_recipe = fixed_recipe(
        completed(training.recipe, training.data->share.stated_batch(), manifest, session.device()), manifest);
    require_resumable(training);
  });
  on_all_ranks(world, [&] { training.trainers = make_remote_trainers(session, training.run); });
  training.learner = std::make_unique<Learner>(session, training.recipe, training.run, *training.data,
                                               training.checkpoints->found(), RemoteEnd{training.trainers.get()});
  training.hosts = world.all_gather(log::host());
  on_all_ranks(world, [&] {
    training.tests = open_tests(session, training.run, *training.data, training.learner->model);
    require_follows(session.device(), training.recipe);
    log_description(training);
    training.events = open_events(training);
  });
  load_weights(training);
  training.stop_if_asked();
  training.has_work = !is_left_whole(training);
  if (training.has_work) choose_kernels(training);
  return training;
}

}  // namespace lockstep
