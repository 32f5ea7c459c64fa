// A run of a custom training loop: a program with its own steps, which Lockstep gives an output folder, reports,
// checkpoints, resume, and stops that all ranks agree on. launch/custom_loop.hpp is the program around it.
//
//   CustomRun run(session, options);
//   ...                                    // what may refuse to go on from run.restored()
//   run.begin();
//   for (std::int64_t step = run.steps_completed() + 1; step <= run.max_steps(); ++step) {
//     ...
//     if (run.world().rank() == 0) run.report_training_metrics(step, {{"loss", loss}});
//     run.save_checkpoint(step, {{"weights", weights}}, {{"learning_rate", rate}});
//     if (run.should_preempt()) break;
//   }
//   return run.conclude();
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "backend/session.hpp"
#include "base/clock.hpp"
#include "base/streamed_array.hpp"
#include "files/checkpoint/checkpoint_folder.hpp"
#include "files/checkpoint/custom_checkpoint.hpp"
#include "files/checkpoint/stream_file.hpp"
#include "files/folder/set_aside.hpp"
#include "recipe/checkpoint_options.hpp"
#include "run/run_state.hpp"
#include "runtime/stop/ending.hpp"
#include "train/observers/metrics_log.hpp"
#include "train/opening/training_scope.hpp"
#include "train/run_summary.hpp"

namespace lockstep {

// Which ranks get the arrays of the checkpoint that a run resumes from.
enum class RestoredArrays : std::uint8_t { on_all_ranks, on_rank_0 };

struct CustomRunOptions {
  std::filesystem::path output;  // not empty
  std::int64_t max_steps = 1;    // of all attempts
  int keep_latest = 2;           // checkpoints
  std::string resume = "auto";   // auto | never | a file
  std::optional<double> time_limit_seconds = {};
  nlohmann::json of_program = nlohmann::json::object();  // the program's options, by name; a resume keeps them
  RestoredArrays restored_arrays = RestoredArrays::on_all_ranks;
};

// Metrics by name (is_metric_name()). Values that are not finite are recorded as null.
using MetricValues = std::map<std::string, double>;

class CustomRun {
 public:
  // Collective. Locks the output folder and restores the newest intact checkpoint in OUTPUT/checkpoints; damaged ones
  // are skipped with a warning. Changes no earlier results. Throws AgreedError: usage if the folder belongs to another
  // job, or the checkpoint to other options or to more than `max_steps`, bad_data if all checkpoints are damaged,
  // stopped_early if a rank is asked to stop meanwhile. `session` outlives this.
  CustomRun(const Session& session, CustomRunOptions options);
  CustomRun(const CustomRun&) = delete;
  CustomRun& operator=(const CustomRun&) = delete;

  const Session& session() const { return session_; }
  const Communicator& world() const { return session_.world; }
  std::int64_t max_steps() const { return options_.max_steps; }
  // Of the restored checkpoint; 0 if there is none, and restored() is empty.
  std::int64_t steps_completed() const { return restored_.steps_completed; }
  const CustomCheckpoint& restored() const { return restored_; }
  // Whether the run resumes from a checkpoint in OUTPUT/checkpoints. Then earlier results in OUTPUT are its own, and
  // begin() leaves them there.
  bool keeps_results() const { return keeps_results_; }
  // The arrays of restored(), which has none afterwards.
  NamedArrays take_restored_arrays() { return std::exchange(restored_.arrays, {}); }

  // Collective, call once, before everything below: nothing refuses the run any more. Results of another run in the
  // folder are set aside with a warning; in metrics.jsonl, those after steps_completed() are removed. Throws
  // AgreedError: stopped_early as the constructor, or as write_file_atomically().
  void begin();

  // On rank 0 only: on another rank they throw Error(usage) that names the rank. They append a line to metrics.jsonl
  // and print it. `steps_completed` is from 1 to max_steps(). Throws Error(usage) also for a name that is not valid.
  void report_training_metrics(std::int64_t steps_completed, const MetricValues& metrics);
  void report_validation_metrics(std::int64_t steps_completed, const MetricValues& metrics);

  // Collective. All ranks pass the same step. Rank 0 writes its arrays and metadata; those of other ranks are ignored.
  // Returns when the file is on the disk, or could not be written, as on a full disk: rank 0 warns, and conclude()
  // fails unless a later one is written.
  // Does nothing if the checkpoint of this step exists. `steps_completed` may not decrease. Throws AgreedError.
  void save_checkpoint(std::int64_t steps_completed, const NamedArrays& arrays, const nlohmann::json& metadata);

  // The same with arrays that all ranks read block by block.
  void stream_checkpoint(std::int64_t steps_completed, std::span<const StreamedArray> arrays,
                         const nlohmann::json& metadata);

  // On rank 0 only. Writes the file OUTPUT/`name`, such as a model. It is listed in summary.json, so that the next run
  // which starts from the beginning sets it aside. So is, with a warning, a file that is there but not listed. Throws
  // as write_file_atomically(), or Error(usage) if `name` is not valid (is_result_name()).
  void write_result(const std::string& name, std::span<const std::byte> bytes);
  // Collective. Rank 0 writes the same with `about` and arrays that all ranks read block by block, in the form of a
  // checkpoint. Returns why the file is not on the disk; empty if it is. If not, rank 0 warns. Throws AgreedError.
  [[nodiscard]] std::string stream_result(const std::string& name, const CustomCheckpoint& about,
                                          std::span<const StreamedArray> arrays);
  std::filesystem::path result(const std::string& name) const { return options_.output / name; }

  // Collective. Whether to end now, with a checkpoint: a rank has received SIGTERM, SIGUSR1 or SIGINT, or the time
  // limit is close. The time between two calls counts as the time that a stop takes.
  bool should_preempt();

  // Collective, call once, when the loop has ended. Code 75 if should_preempt() has returned true, unless there is no
  // checkpoint, or the last one could not be written. Otherwise the run is done, but with code 1 if the last checkpoint
  // could not be written. Throws AgreedError if the results cannot be written.
  Ending conclude();
  // "The same command resumes from step 5."
  std::string what_follows() const;

 private:
  std::string find();
  std::string restored_image(NamedArrays& arrays);
  std::string stream(const std::string& what, const CustomCheckpoint& checkpoint, std::span<const StreamedArray> arrays,
                     const std::function<void(const WriteContent&)>& write);
  void claim_result(const std::string& name);
  void take_over();
  void require_step(std::int64_t steps, const char* what) const;
  void report(const char* kind, std::int64_t steps, const MetricValues& metrics);
  // If writing fails, warns; for a completed run throws Error.
  void write_summary(RunState state);
  nlohmann::json summary_fields() const;
  double seconds() const { return restored_.seconds + scope_.since_start.seconds(); }
  void read_last_validation();
  Ending preempted();

  const Session& session_;
  CustomRunOptions options_;
  TrainingScope scope_;
  CustomCheckpoint restored_;
  std::filesystem::path restored_from_;  // empty: the run is new
  bool keeps_results_ = false;
  std::int64_t saved_step_ = 0;  // 0: there is no checkpoint
  std::string failure_;          // why the last checkpoint was not written; empty: it was
  std::int64_t last_step_ = 0;   // of a report or a checkpoint
  bool is_preempted_ = false;
  bool has_asked_ = false;  // this rank has asked the others to stop
  double checkpoint_seconds_ = 0;
  Stopwatch since_look_;  // since should_preempt()
  // On rank 0:
  std::shared_ptr<FolderLock> output_;
  std::optional<CheckpointFolder> checkpoints_;
  std::optional<MetricsLog> metrics_;
  std::optional<RunSummary> summary_;
  nlohmann::json validation_ = nullptr;  // the last validation metrics
  bool is_left_whole_ = false;           // the run was done before, and has reported nothing since
  std::set<std::string> results_;        // names of those that the run has written
  std::optional<SetAside> aside_;        // for those of an earlier run
};

}  // namespace lockstep
