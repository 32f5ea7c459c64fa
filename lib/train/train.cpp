#include "train/train.hpp"

#include <chrono>
#include <optional>

#include "base/current_error.hpp"
#include "base/log.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/rank_status.hpp"
#include "train/loop/conclusion.hpp"
#include "train/loop/training_loop.hpp"
#include "train/opening/opened_training.hpp"
#include "train/remote/remote_training.hpp"

namespace lockstep {

namespace {

// Collective.
TrainingOutcome train_here(const Session& session, const ValidSettings& settings) {
  OpenedTraining training = open_training(session, settings);
  if (!training.has_work) return leave_as_it_is(training);
  return training.trainers ? train_with_trainers(training) : TrainingLoop(training).run();
}

// Collective.
TrainingOutcome train_to_outcome(const Session& session, const ValidSettings& settings) try {
  if (session.world.size() > 1) return train_here(session, settings);
  TrainingOutcome outcome;
  on_all_ranks(session.world, [&] { outcome = train_here(session, settings); });
  return outcome;
} catch (const AgreedError& error) {
  TrainingOutcome outcome;
  outcome.end = error.failure() == Failure::stopped_early ? End::stopped : End::failed;
  outcome.failure = error.failure();
  outcome.rank = error.rank();
  outcome.sentence = current_error().what();
  return outcome;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Collective. Reports a failure in the folder while it is still leased. If an exception ends the process, the lease is
// kept.
void give_folder_back(const Communicator& world, const TrainingOutcome& outcome) {
  if (outcome.failure && !outcome.sentence.empty() && log::job_rank() == outcome.rank) {
    failure_report::write_in_folder({static_cast<int>(*outcome.failure), 0, outcome.sentence});
  }
  rank_status::enter(Phase::meeting);
  world.barrier();
  failure_report::set_folder({});
}

}  // namespace

TrainingOutcome train(const Session& session, const ValidSettings& settings) {
  const Communicator& world = session.world;
  TrainingOutcome outcome = train_to_outcome(session, settings);
  if (outcome.rank < 0) outcome.rank = static_cast<int>(world.max(world.rank() == 0 ? log::job_rank() : 0));
  outcome.time = world.max(log::job_rank() == outcome.rank ? seconds_since_1970() : 0);
  // Without a label the program ends with the sentence.
  const bool goes_on = !session.label.empty() && !outcome.sentence.empty();
  if (goes_on && log::job_rank() == outcome.rank) log::warning(outcome.sentence);
  give_folder_back(world, outcome);
  return outcome;
}

}  // namespace lockstep
