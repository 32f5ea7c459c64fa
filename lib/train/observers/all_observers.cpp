#include "train/observers/all_observers.hpp"

#include <optional>
#include <utility>

#include "recipe/fields.hpp"
#include "runtime/failure/failure_report.hpp"
#include "train/observers/audit.hpp"
#include "train/observers/best_model.hpp"
#include "train/observers/due_checkpoints.hpp"
#include "train/observers/early_stopping.hpp"
#include "train/observers/metrics_reports.hpp"
#include "train/observers/progress_lines.hpp"
#include "train/observers/straggler.hpp"
#include "train/observers/training_summary.hpp"
#include "train/opening/description.hpp"
#include "train/opening/earlier_results.hpp"
#include "train/opening/resume_rules.hpp"

namespace lockstep {

AllObservers begin_observers(OpenedTraining& training, TrainingCounters& counters) {
  const Session& session = training.session;
  FolderLock* const output = training.output.get();
  Checkpointing& checkpoints = *training.checkpoints;
  const TrainingLength& length = training.data->length;
  const WeightSync& sync = *training.learner->sync;
  std::optional<EarlierResults> earlier;
  if (output != nullptr) {
    const TrainingProgress progress = training.progress();
    const nlohmann::json epochs = json_of(Settings{training.recipe, {}}, Field::Part::recipe)["epochs"];
    earlier.emplace(take_over_results(*output, checkpoints.continues() ? &progress : nullptr, training.steps_left(),
                                      checkpoints.later_output(),
                                      {fixed_recipe(training.recipe, training.data->manifest()), epochs}));
  }
  checkpoints.begin(length.steps_per_epoch, sync.is_replicated() ? nullptr : &sync);
  if (training.events) training.events->begin(counters.steps());
  AllObservers observers{std::make_unique<MetricsStream>(output, std::move(training.events)), {}};
  counters.start(earlier ? earlier->best : BestTest());
  failure_report::own_summary();

  std::vector<std::unique_ptr<TrainingObserver>>& list = observers.in_order;
  // On every rank, some with collectives:
  const bool ranks_wait = !training.learner->sync->hands_out_micro_batches();
  if (session.device().steps_ahead() == 0 && ranks_wait) {
    list.push_back(std::make_unique<StragglerWatch>(session.world, training.data->trainers, *observers.stream,
                                                    training.learner->step.failure(), training.run.report_every,
                                                    counters.steps()));
  }
  list.push_back(std::make_unique<Audit>(session.world, training.learner->model.store, training.run.audit_every));
  const EarlyStopping* early_stopping = nullptr;
  if (training.recipe.early_stop) {
    auto observer = std::make_unique<EarlyStopping>(*training.recipe.early_stop, training.earlier());
    early_stopping = observer.get();
    list.push_back(std::move(observer));
  }
  if (session.world.rank() == 0) {
    list.push_back(std::make_unique<ProgressLines>());
    list.push_back(std::make_unique<MetricsReports>(*observers.stream, training.trainers.get()));
  }
  if (output != nullptr) {
    const auto description = [&training, early_stopping] {
      nlohmann::json fields = summary_fields(training);
      if (early_stopping != nullptr) fields["early_stop"] = early_stopping->summary();
      return fields;
    };
    list.push_back(std::make_unique<BestModel>(*output, counters.best().step, checkpoints.path()));
    list.push_back(std::make_unique<TrainingSummary>(*output, std::move(earlier->summary), counters,
                                                     training.judging_split(), description));
  }
  // Last: a checkpoint has what the others saved. On every rank if the state is divided among them.
  if (session.world.rank() == 0 || checkpoints.is_on()) {
    list.push_back(std::make_unique<DueCheckpoints>(checkpoints, length));
  }
  return observers;
}

}  // namespace lockstep
