// Describes the folder of a training for people.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

// Whether a training has written into the folder: a lock or a checkpoint folder before its first step, then
// summary.json and metrics.jsonl.
bool holds_run(const std::filesystem::path& folder);

// Describes the training in `folder`: its summary.json, whether a process still holds the folder, and its checkpoints,
// of which no weights are read. Reads model-best.h5, to know its step. Of a program with a training loop of its own,
// the newest metrics instead of accuracies. Throws Error(bad_data) if its summary.json has no state.
std::string describe_run(const std::filesystem::path& folder);

}  // namespace lockstep
