// Status of a training, from the files in its output folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "run/exit_report.hpp"
#include "run/lock_holder.hpp"
#include "run/summary.hpp"

namespace lockstep {

struct TrainingStatus {
  Summary summary;                    // all unset if there is none
  std::optional<ExitReport> failure;  // failure.json, if there is neither a state nor a holder: why the start failed
  FolderHolder holder;                // if nobody holds the folder, a training in state `running` was killed
  // As in the summary, unless metrics.jsonl has newer values.
  std::optional<std::int64_t> step, steps;  // done; in the whole training
  std::optional<double> samples_per_second;
  std::optional<double> seconds_left;  // of training, without tests; while the training runs
  std::optional<double> test_accuracy, validation_accuracy;
  std::optional<double> ema_test_accuracy, ema_validation_accuracy;  // with --ema
  std::optional<std::int64_t> written;          // time of the summary's last write, in seconds since 1970
  std::filesystem::path checkpoints;            // see checkpoint_folder_of()
  std::optional<std::int64_t> checkpoint_step;  // of the newest checkpoint there
};

// Throws Error(usage) if a folder has files, but none of a training. A training that has not begun may have none yet.
// The message names `option`.
void require_training(const std::filesystem::path& folder, std::string_view option);

// Never throws because of file contents. Reads at most 16 MiB, in general a few KiB. `base` is the training's working
// directory, if it is known: paths in the summary may be relative to it. `look` returns the holder of the folder. It is
// called before the summary is read, and again afterwards if there was no holder, because a training may have started
// in between.
TrainingStatus training_status(const std::filesystem::path& folder, const std::filesystem::path& base = {},
                               const std::function<FolderHolder(const std::filesystem::path&)>& look = holder_of);

// Where a folder is now that the summary of the training in `folder` names `named`. If `folder` was moved or copied,
// what was inside is still inside, and the paths in the summary may belong to another training by now.
std::filesystem::path present_place(const std::filesystem::path& named, const Summary& summary,
                                    const std::filesystem::path& folder, const std::filesystem::path& base = {});
// The folder of the training's checkpoints.
std::filesystem::path checkpoint_folder_of(const Summary& summary, const std::filesystem::path& folder,
                                           const std::filesystem::path& base = {});

// "running: job 17 on n2 (process 4711)", "stopped; the same command resumes it", ... `summary` has a state.
std::string describe_state(const Summary& summary, const FolderHolder& holder);
// The same of a training that may have no state: "not started", or "failed: " and the sentence of failure.json.
std::string describe_state(const TrainingStatus& status);
// "61.20 %", "61.20 %, EMA 67.60 %"; empty if neither is known.
std::string describe_accuracy(const std::optional<double>& weights, const std::optional<double>& ema);
// Lines for people: state, step, speed, time left, last checkpoint, last test.
std::string status_text(const TrainingStatus& status);

}  // namespace lockstep
