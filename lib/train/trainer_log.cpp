// Log output and summary of a training.
#include <algorithm>
#include <cmath>
#include <span>

#include "backend/versions.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/json_text.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/split.hpp"
#include "device/precision.hpp"
#include "recipe/fields.hpp"
#include "train/rank_places.hpp"
#include "train/trainer.hpp"

namespace lockstep {

namespace {

// Ranks grouped by node name.
nlohmann::json ranks_by_host(std::span<const std::string> hosts) {
  nlohmann::json ranks = nlohmann::json::object();
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) ranks[hosts[rank]].push_back(rank);
  return ranks;
}

nlohmann::json or_null(const std::string& text) { return text.empty() ? nlohmann::json() : nlohmann::json(text); }

// An indented code block, which Markdown shows unchanged.
std::string markdown_code(const nlohmann::json& value) {
  std::string text = "    ";
  for (const char c : json_lines(value)) text += c == '\n' ? "\n    " : std::string(1, c);
  return text;
}

// Hash of the canonical path of a folder; empty if `folder` is empty.
std::string folder_hash(const std::filesystem::path& folder) {
  if (folder.empty()) return "";
  const std::string path = std::filesystem::weakly_canonical(std::filesystem::absolute(folder));
  return xxh3_64_hex(std::as_bytes(std::span(path)));
}

std::int64_t skipped_steps(const WeightSync& sync) {
  return std::llround(sync.loss_scale().value_or(LossScale{}).skipped_steps);
}

}  // namespace

std::string Trainer::gradients_text() const {
  return fmt::format("{}, {}", sync_->description(), counted(sync_->bucket_count(), "bucket"));
}

// Why the global batch differs from the program's default; empty if it does not, or if the user chose it.
std::string Trainer::other_batch_message() const {
  const std::optional<ChosenNumber>& usual = recipe_.batch.global_batch;
  if (!usual || usual->by == ChosenBy::user || usual->value == share_.global_batch) return "";
  const std::string begin = fmt::format("global batch: {} instead of {}", share_.global_batch, usual->value);
  if (checkpoints_.found() != nullptr) return begin + ", as in the checkpoint";
  const std::string parts = fmt::format(
      "{} micro-batches ({})", share_.total_micro_batches,
      recipe_.batch.virtual_ranks ? "virtual ranks" : ranks_and_steps(session_.world.size(), share_.micro_batches));
  std::string why = fmt::format(", which is not divisible by {}", parts);
  if (train_.samples() < usual->value) {
    why = fmt::format(": the training set has {} samples", train_.samples());
    if (train_.samples() > share_.global_batch) why += fmt::format(", which is not divisible by {}", parts);
  }
  return begin + why + ". To choose another, set --global-batch";
}

void Trainer::describe() const {
  const Manifest& data = train_.manifest();
  const LearningRate& rate = recipe_.learning_rate;
  log::info("ranks: {}", describe_rank_places(hosts_));
  log::info("data: {} ({}), {} training and {} test samples of {}", data.name, data.source, train_.samples(),
            test_.samples(), counted(data.classes.size(), "class", "classes"));
  const DType precision = session_.device().precision();
  const SampleShape& image = model_.options.sample;
  log::info("model: {}, {} parameters, {} x {} pixels,{} on {}", model_.options.name, model_.store.parameter_count(),
            image.height, image.width, precision == DType::f32 ? "" : fmt::format(" in {}", precision_name(precision)),
            session_.device().description());
  if (norm_group_) log::info("batch norm: statistics over {} ranks", norm_group_->size());
  const std::string other = other_batch_message();
  if (!other.empty()) log::info(std::string_view(other));
  const std::string steps = counted(length_.steps_per_epoch, "step") + " per epoch";
  if (recipe_.batch.virtual_ranks) {
    log::info("batch: {} in total ({} virtual ranks x {}, on {}), {}", share_.global_batch, share_.total_micro_batches,
              share_.micro_batch_size(), counted(session_.world.size(), "rank"), steps);
  } else {
    log::info("batch: {} per rank, {} in total ({}), {}", share_.micro_batch_size() * share_.micro_batches,
              share_.global_batch, ranks_and_steps(session_.world.size(), share_.micro_batches), steps);
  }
  const std::int64_t left_out = train_.samples() - length_.steps_per_epoch * share_.global_batch;
  if (left_out > 0) {
    log::info(
        "samples: each epoch leaves out {} of {}, different ones each time, because its last batch would be incomplete",
        left_out, train_.samples());
  }
  const double scaled = scaled_rate(rate, share_.global_batch);
  log::info("learning rate: {:.4g} for a batch of {}, {:.4g} for the global batch of {}", rate.rate,
            rate.base_batch == 0 ? share_.global_batch : rate.base_batch, scaled, share_.global_batch);
  // Of six lenet runs on MNIST with different seeds, one or two stopped learning at 0.2, and none at 0.05.
  constexpr double bold_rate = 0.1;
  if (model_.store.statistics().empty() && scaled * 128 / static_cast<double>(share_.global_batch) > bold_rate) {
    log::info(
        "learning rate: {} has no batch norm and may stop learning at this rate. Its loss then stays near {:.2f}. If "
        "it does, set --lr 0.05",
        model_.options.name, std::log(static_cast<double>(data.classes.size())));
  }
  log::info("gradients: {}", gradients_text());
  const bool is_asked_for = session_.label.empty();  // otherwise another program runs the training for its own purposes
  if (session_.world.rank() == 0 && is_asked_for && output_ == nullptr && !checkpoints_.is_on()) {
    log::warning(
        "the weights of this training will be lost when it ends, because neither --output nor --checkpoints is set. To "
        "keep them, set --output FOLDER.");
  }
  if (checkpoints_.found() != nullptr && checkpoints_.found()->state.progress.step == length_.steps()) {
    log::info(
        "this training is already complete: {} of {} steps, {}. To continue it, set more than {}. To start another "
        "one, set another --output or --resume never",
        length_.steps(), length_.steps(), counted(length_.epochs, "epoch"),
        recipe_.max_steps == length_.steps() ? fmt::format("--max-steps {}", length_.steps())
                                             : fmt::format("--epochs {}", length_.epochs));
  }
  if (checkpoints_.is_on()) {
    log::info("checkpoints: {} by {} accuracy", checkpoints_.description(), split_name(judging_split()));
  }
}

void Trainer::show_in_tensorboard() {
  if (run_.tensorboard.empty() || session_.world.rank() != 0) return;
  const Settings settings{recipe_, run_};
  std::string command;
  for (const std::string& word : session_.invocation.command_line) command += (command.empty() ? "" : " ") + word;
  auto events = std::make_unique<EventLog>(
      run_.tensorboard,
      std::vector<EventText>{{"recipe", markdown_code(json_of(settings, Field::Part::recipe))},
                             {"run", markdown_code(json_of(settings, Field::Part::run))},
                             {"command_line", markdown_code(command)}},
      folder_hash(run_.output.empty() ? run_.checkpoints.folder : run_.output));
  if (checkpoints_.found() == nullptr) events->require_own_folder();
  reporter_.add_event_log(std::move(events));
}

// Rank 0 writes. `weights_hash` is empty while the training runs.
void Trainer::write_summary(RunState state, const std::string& weights_hash) {
  if (output_ == nullptr) return;
  nlohmann::json fields = summary();
  fields["weights_hash"] = or_null(weights_hash);
  reporter_.write_summary(state, std::move(fields));
}

// apps/files.md documents these fields and those of Reporter and RunSummary.
nlohmann::json Trainer::summary() const {
  nlohmann::json versions;
  for (const LibraryVersion& library : library_versions()) versions[library.name] = library.version;
  const Settings settings{recipe_, run_};
  return {
      {"command_line", session_.invocation.command_line},
      {"commit", or_null(session_.invocation.commit)},
      {"build", or_null(session_.invocation.build)},
      {"recipe", json_of(settings, Field::Part::recipe)},
      {"run", json_of(settings, Field::Part::run)},
      {"hosts", ranks_by_host(hosts_)},
      {"validation_accuracy", validator_ && reporter_.is_tested() ? nlohmann::json(reporter_.state().score) : nullptr},
      {"best_split", reporter_.is_tested() ? nlohmann::json(split_name(judging_split())) : nullptr},
      {"steps", length_.steps()},
      {"epochs", length_.epochs},
      {"steps_per_epoch", length_.steps_per_epoch},
      {"ranks", session_.world.size()},
      {"global_batch", share_.global_batch},
      {"parts_per_rank", share_.micro_batches},
      {"virtual_ranks", recipe_.batch.virtual_ranks ? nlohmann::json(*recipe_.batch.virtual_ranks) : nullptr},
      {"seed", recipe_.seed},
      {"seconds", watch_.seconds()},
      {"model", model_.options.name},
      {"parameters", model_.store.parameter_count()},
      {"data", train_.manifest().name},
      {"data_hash", train_.manifest().root_hash},
      {"device", session_.device().description()},
      {"precision", precision_name(session_.device().precision())},
      {"skipped_steps", skipped_steps(*sync_)},
      {"versions", versions},
      {"kernels_recalled", step_.plan_use().recalled},
      {"kernels_measured", step_.plan_use().measured},
      {"reducer", sync_->description()},
      {"sync_ms_within_backward", sync_->cost().within_backward_ms},
      {"sync_ms_after_backward", sync_->cost().after_backward_ms}};
}

}  // namespace lockstep
