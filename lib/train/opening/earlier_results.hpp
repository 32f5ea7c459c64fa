// The results of earlier attempts, and of earlier trainings, in the output folder of a training that begins.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "files/checkpoint/training_state.hpp"
#include "files/folder/folder_lock.hpp"
#include "files/folder/set_aside.hpp"
#include "train/loop/training_counters.hpp"
#include "train/run_summary.hpp"

namespace lockstep {

// The settings by which a training finds out whether results are its own.
struct ResultSettings {
  nlohmann::json recipe;  // may_describe() compares it with the summary's
  nlohmann::json epochs;  // --epochs; null if only --max-steps is set
};

struct EarlierResults {
  RunSummary summary;
  BestTest best;  // of all attempts
};

// Call on rank 0 when nothing can prevent the training from starting any more. Moves results of an earlier training in
// the folder of `output` aside, with a warning, because they could be taken for this training's. If the training
// resumes from `earlier` (null: it is new, or the checkpoint is of another folder), and the folder's summary.json may
// be of a training with these settings, truncates metrics.jsonl to that step, and keeps a copy of all results if `past`
// is set aside. If it has no steps left, or the earlier training had the same epochs, the results are its own, and stay
// until they are written again. Logs a changed number of steps. Throws Error if the folder is not writable.
EarlierResults take_over_results(FolderLock& output, const TrainingProgress* earlier, std::int64_t steps_left,
                                 LaterOutput past, const ResultSettings& settings);

}  // namespace lockstep
