#include "train/train.hpp"

#include <optional>

#include "base/error.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/rank_status.hpp"
#include "train/loop/conclusion.hpp"
#include "train/loop/training_loop.hpp"
#include "train/opening/opened_training.hpp"

namespace lockstep {

namespace {

// Collective. Reports a failure in the folder while it is still leased. If an exception ends the training, the lease is
// kept.
void give_folder_back(const Communicator& world, const TrainingOutcome& outcome) {
  const std::optional<Failure> failure = failure_of(outcome);
  if (failure && world.rank() == 0) {
    failure_report::write_in_folder({static_cast<int>(*failure), 0, outcome.sentence});
  }
  rank_status::enter(Phase::meeting);
  world.barrier();
  failure_report::set_folder({});
}

}  // namespace

TrainingOutcome train(const Session& session, const ValidSettings& settings) {
  try {
    OpenedTraining training = open_training(session, settings);
    TrainingOutcome outcome = training.has_work ? TrainingLoop(training).run() : leave_as_it_is(training);
    give_folder_back(session.world, outcome);
    return outcome;
  } catch (const Stopped& stopped) {
    TrainingOutcome outcome;
    outcome.end = End::stopped;
    outcome.sentence = stopped.sentence;
    give_folder_back(session.world, outcome);
    return outcome;
  }
}

}  // namespace lockstep
