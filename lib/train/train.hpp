// Trains one model: epochs of steps over a data set, a test after each epoch, reports and checkpoints, and the model
// file at the end. Resumes from a checkpoint if there is one.
#pragma once

#include "backend/session.hpp"
#include "recipe/run_options.hpp"
#include "train/training_outcome.hpp"

namespace lockstep {

// Collective. Trains to the end, or until the training diverges, fails, or a rank is asked to stop, also during the
// start. Results of an earlier run are not modified before all ranks are ready. Unless the outcome is a success,
// failure.json in the output folder states the reason. Releases the folder. Returns after a barrier over all ranks.
//
// If all ranks refuse the training, or the work of one of them fails (wrong options, damaged files, no memory), all
// ranks return with End::failed, and the process can continue. Failures of the communication between ranks, and of a
// rank between two sums of a GPU or of synchronized batch norm, end the job where they occur: see launch/run.hpp.
// runtime/README.md describes process-wide state and several trainings in one job.
TrainingOutcome train(const Session& session, const ValidSettings& settings);

}  // namespace lockstep
