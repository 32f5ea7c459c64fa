// The end of a training: done, stopped early, or diverged. In each case the last checkpoint is safe.
#pragma once

#include <cstdint>
#include <optional>

#include "step/step_given_up.hpp"
#include "train/loop/observer.hpp"
#include "train/opening/opened_training.hpp"
#include "train/training_outcome.hpp"

namespace lockstep {

// Collective. Writes the last checkpoint, and the model file if the training is done. `last`: its state after the last
// step. `given_up`: the step that ended the training, if one did; then `end` is `stopped`.
TrainingOutcome conclude(const OpenedTraining& training, const TrainingView& last, End end,
                         const std::optional<StepGivenUp>& given_up);

// Collective. The outcome of a training without work left. Changes no file.
TrainingOutcome leave_as_it_is(const OpenedTraining& training);

// Ends the process on rank 0 before mpirun kills it. `kept`: the checkpoint after `steps` steps. Called on the thread
// of EmergencyStop, while the main thread is in a step or a test, so no object can be destroyed.
[[noreturn]] void end_before_kill(const OpenedTraining& training, std::int64_t steps, const Checkpointing::Kept& kept);

}  // namespace lockstep
