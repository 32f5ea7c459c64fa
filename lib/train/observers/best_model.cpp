#include "train/observers/best_model.hpp"

#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "run/checkpoint_files.hpp"
#include "train/pretrained/run_model.hpp"

namespace lockstep {
namespace {

std::optional<ModelFile> model_in(const std::filesystem::path& checkpoint, std::int64_t step) try {
  ModelFile model = read_weights(checkpoint);
  model.step = step;
  return model;
} catch (const Error&) {
  return std::nullopt;  // absent, or damaged: reported if the user resumes from it
}

}  // namespace

std::filesystem::path BestModel::file() const { return output_.folder() / best_model_file; }

BestModel::BestModel(FolderLock& output, std::int64_t best_step, const std::filesystem::path& checkpoints)
    : output_(output) {
  if (best_step > 0 && step_of_model(file()) == best_step) return;
  output_.require_held();
  std::error_code error;
  std::filesystem::remove(file(), error);
  if (best_step == 0) return;
  unwritten_ = model_in(checkpoints / checkpoint_name(best_step), best_step);
  write();
}

void BestModel::on_tested(const TrainingView& training) {
  if (training.counters.best().step == training.progress.step) unwritten_ = training.model_file();
  write();
}

void BestModel::on_end(const TrainingOutcome& outcome) {
  if (outcome.end == End::done) write();
}

void BestModel::write() {
  if (!unwritten_) return;
  output_.require_held();
  try {
    write_model_file(file(), *unwritten_);
    unwritten_.reset();
  } catch (const Error& error) {
    if (!std::exchange(has_warned_, true)) {
      log::warning("{} The training continues. {} is out of date until there is space.", error.what(), best_model_file);
    }
  }
}

}  // namespace lockstep
