// How a training ends: stopped early, or done; with its last checkpoint either way.
#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/watch/rank_status.hpp"
#include "train/trainer.hpp"

namespace lockstep {

// What went wrong, in words; empty: it is safe, or there is none to be. Collective.
std::string Trainer::write_last_checkpoint() {
  std::string failure;
  if (checkpoints_.is_on()) failure = checkpoints_.write_last(checkpoint());
  return session_.world.broadcast(std::move(failure), 0);
}

// Collective. Between the phases of the start, before anything is changed.
void Trainer::stop_start_if_asked() const {
  const Checkpoint* const found = checkpoints_.found();
  stops_.end_start_if_asked(found == nullptr
                                ? "nothing was begun. The same command begins it."
                                : fmt::format("the checkpoint of step {} stands. The same command goes on from it.",
                                              found->state.progress.step));
}

Ending Trainer::stop() {
  const std::string at =
      fmt::format("stopped after step {} of {} ({})", progress_.step, length_.steps(), stops_.reason());
  if (run_.checkpoints.folder.empty()) {
    return {static_cast<int>(Failure::other),
            at + " without a checkpoint (neither --checkpoints nor --output is set)."};
  }
  rank_status::enter(Phase::saving);
  const std::string failure = write_last_checkpoint();
  if (!failure.empty()) {
    return {static_cast<int>(Failure::other), fmt::format("{}, and its checkpoint is not written: {}", at, failure)};
  }
  const std::string sentence = fmt::format("{}, with a checkpoint in '{}'. The same command goes on from it.", at,
                                           run_.checkpoints.folder.string());
  log::info(sentence);
  return {static_cast<int>(Failure::stopped_early), sentence};
}

Ending Trainer::save() {
  rank_status::enter(Phase::saving);
  const std::string failure = write_last_checkpoint();
  if (session_.world.rank() == 0) {
    const Manifest& data = train_.manifest();
    const ParameterStore& store = step_.model().store;
    const std::string hash = store.weights_hash();
    if (output_ != nullptr) {
      output_->require_held();
      write_model_file(run_.output / "model.h5",
                       {recipe_.model, data.classes, data.shape, data.mean, data.deviation, store.entries()});
    }
    reporter_.finish(summary(hash));
    log::info("test accuracy {:.2f} %  ({:.0f} samples/s, {} in all, weights {})",
              100 * reporter_.state().test_accuracy, reporter_.samples_per_second(), duration_words(watch_.seconds()),
              hash);
    if (checkpoints_.failures() > 0) log::warning("{} checkpoints were not written.", checkpoints_.failures());
  }
  if (failure.empty()) return {};
  return {static_cast<int>(Failure::other),
          fmt::format("the training is done, but its last checkpoint is not written: {}", failure)};
}

}  // namespace lockstep
