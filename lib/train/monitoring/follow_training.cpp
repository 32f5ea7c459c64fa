#include "train/monitoring/follow_training.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "dataset/same_data.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "run/training_status.hpp"
#include "train/evaluation/evaluation_text.hpp"
#include "train/evaluation/make_evaluator.hpp"
#include "train/evaluation/model_fit.hpp"
#include "train/monitoring/checkpoint_feed.hpp"
#include "train/monitoring/evaluation_list.hpp"
#include "train/monitoring/job_training.hpp"

namespace lockstep {
namespace {

constexpr auto pause = std::chrono::milliseconds(500);

// A network that loads one checkpoint after another.
class Scorer {
 public:
  Scorer(Session& session, const FollowOptions& options, const Dataset& dataset, const ImageRules& rules,
         const ModelFile& first)
      : model_(session.device(), model_options(first)) {
    model_.store.allocate(session.device().make_persistent(model_.store.gradient_buffer_count(), DType::f32));
    evaluator_ =
        make_evaluator(session, model_, {dataset, rules, options.loader_threads, DataPlace::automatic, options.view});
  }

  // Collective.
  Evaluation score(const ModelFile& file) {
    model_.store.assign(file.entries);
    return evaluator_->evaluate();
  }

 private:
  Model model_;
  std::unique_ptr<Evaluator> evaluator_;
};

class Follower {
 public:
  Follower(Session& session, const FollowOptions& options)
      : session_(session), options_(options), dataset_(options.data), feed_(options.folder) {
    require_same_on_ranks(session.world, {identity_of_data(options.data, dataset_.manifest())}, same_files_advice);
    if (!speaks()) return;
    require(is_absent(options.folder) || std::filesystem::is_directory(options.folder), Failure::usage,
            "'{}' is not a folder. Set --follow to the output folder of a training.", options.folder.string());
    require_training(options.folder, "--follow");
    list_.emplace(EvaluationList::file_of(options.folder, split_name()));
    log::info("following '{}'. The results are written to '{}'", options.folder.string(), list_->file().string());
  }

  void run() {
    while (true) {
      CheckpointFeed::Look found = speaks() ? wait_for_next() : CheckpointFeed::Look();
      found.image = session_.world.broadcast(std::move(found.image), 0);
      if (found.image.empty()) {
        if (speaks()) require_any(found);
        if (list_) list_->finish();
        log::info("the training has ended ({}). All of its checkpoints are in the list", found.message);
        return;
      }
      has_found_ = true;
      found.path = session_.world.broadcast(found.path.string(), 0);
      take(found);
    }
  }

 private:
  bool speaks() const { return session_.world.rank() == 0; }
  std::string split_name() const { return choice_name(splits, options_.split); }

  CheckpointFeed::Look wait_for_next() {
    while (true) {
      CheckpointFeed::Look look = feed_.look();
      const bool is_empty = look.kind == CheckpointFeed::Look::Kind::checkpoint && look.image.empty();
      if (look.kind != CheckpointFeed::Look::Kind::nothing_yet && !is_empty) return look;
      if (is_empty) log::warning("'{}' is empty. It is skipped.", look.path.string());
      if (look.kind != CheckpointFeed::Look::Kind::nothing_yet) continue;
      say_what_it_waits_for();
      std::this_thread::sleep_for(pause);
    }
  }

  void require_any(const CheckpointFeed::Look& end) const {
    require(has_found_, Failure::usage,
            "the training has ended ({}), but '{}' has no checkpoints. Nothing was evaluated. Check whether they were "
            "moved or removed.",
            end.message, end.path.string());
  }

  void say_what_it_waits_for() {
    const bool is_first = !std::exchange(has_waited_, true);
    if (is_first) {
      log::info("'{}' {}. Waiting for a checkpoint. Press Ctrl-C to stop.", options_.folder.string(),
                is_absent(options_.folder) ? "does not exist yet" : "has no new checkpoint yet");
    }
    if (log::is_terminal()) {
      log::progress("waiting for a checkpoint. Training: " + training_line(training_status(options_.folder)));
    }
  }

  // std::nullopt, with a warning, if it is damaged.
  std::optional<Checkpoint> whole(CheckpointFeed::Look& found) const try {
    return parse_checkpoint(found.path, found.image);
  } catch (const Error& error) {
    if (speaks()) log::warning("{} It is skipped.", error.what());
    return std::nullopt;
  }

  // Collective. All ranks read the same bytes, so they agree on whether the checkpoint is valid.
  void take(CheckpointFeed::Look& found) {
    std::optional<Checkpoint> checkpoint = whole(found);
    if (!checkpoint) return;
    const TrainingProgress progress = checkpoint->state.progress;
    const ModelFile model = model_to_use(std::move(*checkpoint));
    const ImageRules rules = rules_for(model, dataset_.manifest(), options_.images);
    const Device& device = session_.device();
    const EvaluationInputs inputs = {
        progress.step,      weights_hash(model.entries), dataset_.manifest().root_hash, rules, options_.view,
        device.precision(), device.uses_tf32()};
    const bool knows = list_ && list_->has(inputs);
    if (!session_.world.broadcast(knows ? "known" : "", 0).empty()) return;
    const bool has_other_images = normalize_as_trained(dataset_, model.mean, model.deviation);
    if (!scorer_ || has_other_images || model_ != model.model + model.network) {
      model_ = model.model + model.network;
      scorer_ = std::make_unique<Scorer>(session_, options_, dataset_, rules, model);
    }
    const Evaluation evaluation = scorer_->score(model);
    if (!list_) return;
    log::info("step {}  {} loss {:.4f}  {} accuracy {}  ({} samples)", progress.step, split_name(), evaluation.loss(),
              split_name(), accuracy_text(evaluation), evaluation.samples);
    list_->add(inputs, progress.epoch, evaluation);
  }

  Session& session_;
  const FollowOptions& options_;
  Dataset dataset_;
  CheckpointFeed feed_;
  std::optional<EvaluationList> list_;  // rank 0
  std::string model_;
  std::unique_ptr<Scorer> scorer_;
  bool has_waited_ = false;
  bool has_found_ = false;  // whether a checkpoint has been found
};

}  // namespace

void follow_training(Session& session, const FollowOptions& options) { Follower(session, options).run(); }

}  // namespace lockstep
