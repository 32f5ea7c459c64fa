// Checkpoints of one training: what it goes on from, when the next one is due, and whether the last one is safe.
//
// Rank 0 alone holds the folder; every rank holds the same state, so one writes for all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "files/checkpoint/checkpoint_writer.hpp"
#include "files/folder/set_aside.hpp"
#include "recipe/checkpoint_options.hpp"
#include "runtime/stop/stop_agreement.hpp"

namespace lockstep {

class Checkpointing {
 public:
  // Collective. Rank 0 takes the folder of `options` (if there is one; it may be that of `output`, whose lock is
  // taken), finds what to go on from, and every rank gets it. Throws Error(usage) if the folder is another training's,
  // Error(bad_data) if no checkpoint in it is whole, Stopped if `stops` ends the waiting for the folder.
  Checkpointing(const Communicator& world, CheckpointOptions options, const std::shared_ptr<FolderLock>& output,
                const StopAgreement& stops);

  // What the training goes on from; null: from the beginning.
  const Checkpoint* found() const { return found_ ? &*found_ : nullptr; }
  const std::filesystem::path& found_in() const { return found_in_; }  // its file
  // Frees the tensors of found(), which are in the model by now.
  void forget_tensors();

  // Call once, when nothing more can keep the training from beginning, or going on, where found() says. Returns what
  // becomes of steps that an earlier one made beyond that.
  LaterOutput begin(std::int64_t steps_per_epoch);

  // Whether this rank is to write one after `step` steps: rank 0, when the time has come and no other is under way.
  bool is_due(std::int64_t step) const;
  void write(Checkpoint checkpoint);  // in the background

  // Whether this rank writes at all.
  bool is_on() const { return folder_ != nullptr; }
  // A checkpoint: its file, or what went wrong.
  struct Kept {
    std::filesystem::path path;
    std::string failure;
  };
  // Whether none is under way. Then: whether the last one is of `step` steps, and what became of it.
  bool is_idle() const { return writer_->is_idle(); }
  bool is_written(std::int64_t step) const { return writer_->record().step == step; }
  Kept last() const;
  // Waits, writes `checkpoint` unless its step is written, and reads the file back.
  Kept write_last(Checkpoint checkpoint);
  // Waits. The newest checkpoint whose weights are numbers; empty: this rank has none.
  std::filesystem::path newest_finite();
  // Seconds from a decision to stop until a checkpoint is safe, as measured so far.
  double seconds_to_write() const;
  // "'runs/a/checkpoints', every 1epoch,10min; kept: the latest 2 and the best 1"
  std::string description() const;
  // The step of the newest file; nothing if there is none.
  std::optional<std::int64_t> newest_step() const;
  // Where the process ends without destroying this: see FolderLock::give_back().
  void give_back();
  std::filesystem::path path() const { return folder_ ? folder_->path() : options_.folder; }
  std::int64_t failures() const { return writer_ ? writer_->record().failures : 0; }

 private:
  std::string find();

  CheckpointOptions options_;
  std::unique_ptr<CheckpointFolder> folder_;  // rank 0
  std::optional<Checkpoint> found_;
  std::filesystem::path found_in_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::optional<CheckpointClock> clock_;
};

}  // namespace lockstep
