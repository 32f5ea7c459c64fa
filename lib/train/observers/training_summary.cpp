#include "train/observers/training_summary.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace lockstep {

namespace {

RunState state_of(const TrainingOutcome& outcome) {
  switch (outcome.end) {
    case End::stopped:
      return RunState::stopped;
    case End::diverged:
      return RunState::diverged;
    case End::failed:
      return RunState::failed;
    case End::done:
      break;
  }
  return outcome.failure ? RunState::failed : RunState::done;
}

}  // namespace

TrainingSummary::TrainingSummary(FolderLock& output, RunSummary file, const TrainingCounters& counters, Split judging,
                                 std::function<nlohmann::json()> description)
    : output_(output),
      file_(std::move(file)),
      counters_(counters),
      judging_(judging),
      description_(std::move(description)) {
  write(RunState::running, "");
}

void TrainingSummary::on_end(const TrainingOutcome& outcome) { write(state_of(outcome), outcome.weights_hash); }

// apps/files.md documents all fields.
void TrainingSummary::write(RunState state, const std::string& weights_hash) {
  nlohmann::json fields = description_();
  const auto if_tested = [this](const auto& value) { return counters_.is_tested() ? nlohmann::json(value) : nullptr; };
  const ReportState counted = counters_.state();
  const std::optional<TestFigures>& ema = counted.mean_test;
  fields["weights_hash"] = weights_hash.empty() ? nlohmann::json() : nlohmann::json(weights_hash);
  fields["step"] = counters_.steps();
  fields["test_accuracy"] = if_tested(counted.test_accuracy);
  fields["test_loss"] = if_tested(counted.test_loss);
  fields["ema_test_accuracy"] = ema ? nlohmann::json(ema->accuracy) : nullptr;
  fields["ema_test_loss"] = ema ? nlohmann::json(ema->loss) : nullptr;
  const std::optional<PlainTest>& plain = counted.plain_test;
  fields["test_augment"] = plain ? nlohmann::json(test_augmentation_name(plain->augmentation)) : nullptr;
  fields["plain_test_accuracy"] = plain ? nlohmann::json(plain->accuracy) : nullptr;
  fields["plain_ema_test_accuracy"] = plain && plain->mean_accuracy ? nlohmann::json(*plain->mean_accuracy) : nullptr;
  fields["validation_accuracy"] = judging_ == Split::validation ? if_tested(counted.score) : nullptr;
  fields["plain_validation_accuracy"] = counted.plain_validation ? nlohmann::json(*counted.plain_validation) : nullptr;
  fields["best_accuracy"] = if_tested(counters_.best().accuracy);
  fields["best_step"] = if_tested(counters_.best().step);
  fields["best_split"] = if_tested(split_name(judging_));
  fields["samples_per_second"] = counters_.samples_per_second();
  fields["training_seconds"] = counted.training_seconds;
  output_.require_held();
  if (state == RunState::done) return file_.write(state, std::move(fields));
  try {
    file_.write(state, std::move(fields));
  } catch (const Error& error) {
    if (!std::exchange(has_warned_, true)) {
      log::warning("{} The training continues. summary.json is out of date until the next one is written.",
                   error.what());
    }
  }
}

}  // namespace lockstep
