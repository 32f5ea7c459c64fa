// Describes an opened training, for the log and for summary.json.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "train/opening/opened_training.hpp"

namespace lockstep {

// Logs ranks, data, model, batch, learning rate, checkpoints, and what the user may not expect.
void log_description(const OpenedTraining& training);

// The texts that TensorBoard shows: recipe, options of the run, command line.
std::vector<EventText> event_texts(const OpenedTraining& training);

// The fields of summary.json that do not depend on the training's counters. apps/files.md documents them. Waits for the
// device.
nlohmann::json summary_fields(const OpenedTraining& training);

}  // namespace lockstep
