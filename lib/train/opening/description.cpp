#include "train/opening/description.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "backend/versions.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "device/precision.hpp"
#include "recipe/fields.hpp"
#include "train/observers/early_stopping.hpp"
#include "train/rank_places.hpp"
#include "train/shared_work_report.hpp"
#include "train/staleness_report.hpp"

namespace lockstep {

namespace {

// Ranks grouped by node name.
nlohmann::json ranks_by_host(std::span<const std::string> hosts) {
  nlohmann::json ranks = nlohmann::json::object();
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) ranks[hosts[rank]].push_back(rank);
  return ranks;
}

nlohmann::json or_null(const std::string& text) { return text.empty() ? nlohmann::json() : nlohmann::json(text); }

std::int64_t skipped_steps(const WeightSync& sync) {
  return std::llround(sync.loss_scale().value_or(LossScale{}).skipped_steps);
}

// An indented code block, which Markdown shows unchanged.
std::string markdown_code(const nlohmann::json& value) {
  std::string text = "    ";
  for (const char c : json_lines(value)) text += c == '\n' ? "\n    " : std::string(1, c);
  return text;
}

const char* trainer_name(const OpenedTraining& training) {
  if (training.trainers) return "trainer";
  return name_of_trainer(training.data->trainers, training.session.world.size());
}

// "train_cifar --trainer-of 'runs/r20'"
std::string how_to_join(const OpenedTraining& training) {
  const std::vector<std::string>& words = training.session.invocation.command_line;
  const std::string program = words.empty() ? "" : std::filesystem::path(words.front()).filename().string() + " ";
  return fmt::format("{}--trainer-of '{}'", printable(program), printable(training.run.output.string()));
}

// Why the global batch differs from the program's default; empty if it does not, or if the user chose it.
std::string other_batch_message(const OpenedTraining& training) {
  const BatchOptions& batch = training.recipe.batch;
  const LoaderShare& share = training.data->share;
  const std::int64_t samples = training.data->train->samples();
  const std::optional<ChosenNumber>& usual = batch.global_batch;
  const std::int64_t chosen = share.stated_batch();
  if (!usual || usual->by == ChosenBy::user || usual->value == chosen) return "";
  const std::string begin = fmt::format("global batch: {} instead of {}", chosen, usual->value);
  if (training.earlier() != nullptr) return begin + ", as in the checkpoint";
  const std::string parts = fmt::format(
      "{} micro-batches ({})", share.total_micro_batches / share.rounds,
      batch.virtual_ranks ? "virtual ranks"
                          : ranks_and_steps(training.data->trainers, batch.accumulate, trainer_name(training)));
  std::string why = fmt::format(", which is not divisible by {}", parts);
  if (samples < usual->value * share.rounds) {
    why = fmt::format(": the training set has {} samples", samples);
    if (share.rounds > 1) why += fmt::format(", and a step {} of these batches", share.rounds);
    if (samples > share.global_batch) why += fmt::format(", which is not divisible by {}", parts);
  }
  return begin + why + ". To choose another, set --global-batch";
}

}  // namespace

void log_description(const OpenedTraining& training) {
  const Session& session = training.session;
  const TrainingData& on = *training.data;
  const LoaderShare& share = on.share;
  const TrainingLength& length = on.length;
  const Recipe& recipe = training.recipe;
  const Learner& learner = *training.learner;
  const Checkpointing& checkpoints = *training.checkpoints;
  const Manifest& data = on.manifest();
  const LearningRate& rate = recipe.learning_rate;
  log::info("ranks: {}", describe_rank_places(training.hosts));
  log::info("data: {} ({}), {} training and {} test samples of {}", data.name, data.source, on.train->samples(),
            on.test->samples(), counted(data.classes.size(), "class", "classes"));
  const DType precision = session.device().precision();
  const SampleShape& image = learner.model.options.sample;
  log::info("model: {}, {} parameters, {} x {} pixels,{} on {}", learner.model.options.name,
            learner.model.store.parameter_count(), image.height, image.width,
            precision == DType::f32 ? "" : fmt::format(" in {}", precision_name(precision)),
            session.device().description());
  if (learner.norm_group) log::info("batch norm: statistics over {} ranks", learner.norm_group->size());
  const std::string other = other_batch_message(training);
  if (!other.empty()) log::info(std::string_view(other));
  const std::string steps = counted(length.steps_per_epoch, "step") + " per epoch";
  if (training.trainers) {
    log::info("roles: parameter server of {} (--trainers). To start one: {}", counted(on.trainers, "trainer"),
              how_to_join(training));
  } else if (on.trainers < session.world.size()) {
    log::info("roles: {} (the first ranks), {}", counted(on.trainers, "trainer"),
              counted(session.world.size() - on.trainers, "parameter server"));
  }
  if (recipe.batch.virtual_ranks) {
    log::info("batch: {} in total ({} virtual ranks x {}, on {}), {}", share.global_batch, share.total_micro_batches,
              share.micro_batch_size(), counted(on.trainers, trainer_name(training)), steps);
  } else if (recipe.sync == Sync::local) {
    log::info("batch: {} per rank, {} in total ({}); {} per step, {}", share.micro_batch_size(), share.update_batch(),
              counted(session.world.size(), "rank"), counted(share.updates, "update"), steps);
  } else if (recipe.sync == Sync::async_servers) {
    log::info("batch: {} per update, {} in total ({}); {} per step, {}", share.update_batch(), share.stated_batch(),
              counted(on.trainers, "trainer"), counted(share.updates, "update"), steps);
  } else {
    log::info("batch: {} per rank, {} in total ({}), {}", share.micro_batch_size() * share.micro_batches,
              share.global_batch, ranks_and_steps(on.trainers, share.micro_batches, trainer_name(training)), steps);
  }
  const std::int64_t left_out = on.train->samples() - length.steps_per_epoch * share.global_batch;
  if (left_out > 0) {
    log::info(
        "samples: each epoch leaves out {} of {}, different ones each time, because its last batch would be incomplete",
        left_out, on.train->samples());
  }
  const std::int64_t batch = share.update_batch();
  const double scaled = scaled_rate(rate, batch);
  log::info("learning rate: {:.4g} for a batch of {}, {:.4g} for {} of {}", rate.rate,
            rate.base_batch == 0 ? batch : rate.base_batch, scaled,
            recipe.sync == Sync::async_servers ? "an update" : "the global batch", batch);
  for (const RateScale& scale : training.recipe.optimizer.rate_scales) {
    log::info("learning rate: {} times that for parameters '{}'", scale.factor, printable(scale.pattern));
  }
  // Of six lenet runs on MNIST with different seeds, one or two stopped learning at 0.2, and none at 0.05.
  constexpr double bold_rate = 0.1;
  if (learner.model.store.statistics().empty() && scaled * 128 / static_cast<double>(batch) > bold_rate) {
    log::info(
        "learning rate: {} has no batch norm and may stop learning at this rate. Its loss then stays near {:.2f}. If "
        "it does, set --lr 0.05",
        learner.model.options.name, std::log(static_cast<double>(data.classes.size())));
  }
  log::info("{}: {}", recipe.sync == Sync::local ? "weights" : "gradients", learner.gradients_text());
  if (recipe.sync == Sync::local && share.updates == 1) {
    log::info(
        "weights: with one update per step, ranks exchange as often as with --sync all-reduce. Set --local-steps");
  }
  if (recipe.sync == Sync::async_servers && recipe.batch.local_steps == 1) {
    log::info("gradients: with one micro-batch per step, trainers wait as with --sync ps. Set --local-steps");
  }
  if (recipe.powersgd_rank > 0 && session.world.size() == 1) {
    log::info("{}: with one rank, --compress approximates them and saves nothing. Leave out --compress",
              recipe.sync == Sync::local ? "weights" : "gradients");
  }
  if (training.run.sums.shard_optimizer) {
    log::info("optimizer: its state{} is divided among {} (--shard-optimizer)",
              learner.sync->keeps_ema() ? ", with the EMA," : "", counted(session.world.size(), "rank"));
  }
  if (recipe.early_stop) log::info("early stopping: the training ends {}", describe_early_stop(recipe));
  const bool is_asked_for = session.label.empty();  // otherwise another program runs the training for its own purposes
  if (session.world.rank() == 0 && is_asked_for && training.output == nullptr && !checkpoints.is_on()) {
    log::warning(
        "the weights of this training will be lost when it ends, because neither --output nor --checkpoints is set. To "
        "keep them, set --output FOLDER.");
  }
  const std::int64_t steps_done = training.progress().step;
  if (training.steps_left() == 0 && steps_done < length.steps()) {
    log::info(
        "this training is already complete: early stopping ended it after step {} of {}. To continue it, choose a "
        "larger PATIENCE in --early-stop or leave it out. To start another one, set another --output or --resume never",
        steps_done, length.steps());
  } else if (training.steps_left() == 0) {
    log::info(
        "this training is already complete: {} of {} steps, {}. To continue it, set more than {}. To start another "
        "one, set another --output or --resume never",
        length.steps(), length.steps(), counted(length.epochs, "epoch"),
        recipe.max_steps == length.steps() ? fmt::format("--max-steps {}", length.steps())
                                           : fmt::format("--epochs {}", length.epochs));
  }
  if (checkpoints.is_on()) {
    log::info("checkpoints: {} by {} accuracy", checkpoints.description(), split_name(training.judging_split()));
  }
}

std::vector<EventText> event_texts(const OpenedTraining& training) {
  const Settings settings{training.recipe, training.run};
  std::string command;
  for (const std::string& word : training.session.invocation.command_line) {
    command += (command.empty() ? "" : " ") + word;
  }
  return {{"recipe", markdown_code(json_of(settings, Field::Part::recipe))},
          {"run", markdown_code(json_of(settings, Field::Part::run))},
          {"command_line", markdown_code(command)}};
}

nlohmann::json summary_fields(const OpenedTraining& training) {
  const Session& session = training.session;
  const TrainingData& data = *training.data;
  const Recipe& recipe = training.recipe;
  const Learner& learner = *training.learner;
  const Settings settings{recipe, training.run};
  nlohmann::json fields = {
      {"command_line", session.invocation.command_line},
      {"commit", or_null(session.invocation.commit)},
      {"build", or_null(session.invocation.build)},
      {"recipe", json_of(settings, Field::Part::recipe)},
      {"run", json_of(settings, Field::Part::run)},
      {"hosts", ranks_by_host(training.hosts)},
      {"steps", data.length.steps()},
      {"epochs", data.length.epochs},
      {"steps_per_epoch", data.length.steps_per_epoch},
      {"ranks", session.world.size()},
      {"global_batch", data.share.stated_batch()},
      {"updates_per_step", data.share.updates},
      {"parts_per_rank", training.trainers ? 1 : data.share.micro_batches / data.share.rounds},
      {"virtual_ranks", recipe.batch.virtual_ranks ? nlohmann::json(*recipe.batch.virtual_ranks) : nullptr},
      {"seed", recipe.seed},
      {"seconds", training.scope->since_start.seconds()},
      {"model", learner.model.options.name},
      {"parameters", learner.model.store.parameter_count()},
      {"data", data.train->manifest().name},
      {"data_hash", data.train->manifest().root_hash},
      {"device", session.device().description()},
      {"precision", precision_name(session.device().precision())},
      {"skipped_steps", skipped_steps(*learner.sync)},
      {"versions", versions_used(session.backend->libraries())},
      {"kernels_recalled", learner.step.plan_use().recalled},
      {"kernels_measured", learner.step.plan_use().measured},
      {"reducer", learner.sync->description()},
      {"sync_ms_within_backward", learner.sync->cost().within_backward_ms},
      {"sync_ms_after_backward", learner.sync->cost().after_backward_ms}};
  if (const Staleness* const staleness = learner.sync->staleness()) fields.update(staleness_fields(*staleness));
  if (const SharedWork* const work = learner.sync->shared_work()) fields.update(shared_work_fields(*work));
  return fields;
}

}  // namespace lockstep
