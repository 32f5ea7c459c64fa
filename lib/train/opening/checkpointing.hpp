// Checkpoints of one training: which one it resumes from, when the next one is due, and whether the last one is safe.
//
// Only rank 0 accesses the folder. If all ranks hold the same state, it writes alone; if the state is divided among
// ranks, they send it to rank 0.
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
  // Collective. Rank 0 locks the folder of `options`, if one is set; if it is the folder of `output`, that lock is
  // shared. Rank 0 then finds the checkpoint to resume from, and broadcasts it. Throws AgreedError: usage if the
  // folder belongs to another training, bad_data if no checkpoint in it is valid, stopped_early if `stops` ends the
  // wait for the folder.
  Checkpointing(const Communicator& world, CheckpointOptions options, const std::shared_ptr<FolderLock>& output,
                const StopAgreement& stops);

  // The checkpoint to resume from; null: the training starts from the beginning.
  const Checkpoint* found() const { return found_ ? &*found_ : nullptr; }
  const std::filesystem::path& found_in() const { return found_in_; }  // its file
  // Frees the tensors of found(). Call once they are loaded into the model.
  void forget_tensors();

  // Whether this training resumes the one whose results and checkpoints are in its folders. If not, they are set aside.
  bool continues() const { return continues_; }

  // What happens to the output of an earlier attempt for later steps. Set it aside before begin(): a start that is
  // killed in between finds the same checkpoints again, and decides likewise.
  LaterOutput later_output() const;
  // Call once, when nothing can prevent the training from starting or resuming any more. Sets checkpoints of later
  // steps aside; all of them unless the training continues(). `divided` has the tensors if they are divided among
  // ranks, and outlives this: is_due(), write() and write_last() are collective from here on. Null: every rank has the
  // whole state.
  void begin(std::int64_t steps_per_epoch, const WeightSync* divided);

  // Whether this rank takes part in writing a checkpoint after `step` steps: rank 0, if one is due and none is being
  // written; if the state is divided among ranks, every rank.
  bool is_due(std::int64_t step) const;
  // In the background; with tensors that are divided among ranks before it returns.
  void write(Checkpoint checkpoint);

  // Whether the state is divided among ranks.
  bool is_divided() const { return divided_ != nullptr; }
  // Whether this rank takes part in writing checkpoints.
  bool is_on() const { return folder_ != nullptr || (divided_ != nullptr && !options_.folder.empty()); }
  // The result of writing a checkpoint: its file, or an error message.
  struct Kept {
    std::filesystem::path path;
    std::string failure;
  };
  // Whether no checkpoint is being written. If so, is_written() tells whether the last one is of `step`, and last()
  // returns its result.
  bool is_idle() const { return writer_->is_idle(); }
  bool is_written(std::int64_t step) const { return writer_->record().step == step; }
  Kept last() const;
  // Waits for the writer, writes `checkpoint` unless that step is already written, and reads the file back.
  Kept write_last(Checkpoint checkpoint);
  // Waits for the writer. The newest checkpoint with finite weights; empty if this rank has none.
  std::filesystem::path newest_finite();
  // Seconds from a decision to stop until a checkpoint is safe, estimated from earlier checkpoints.
  double seconds_to_write() const;
  // "'runs/a/checkpoints', every 1epoch,10min; kept: the latest 2 and the best 1"
  std::string description() const;
  // The step of the newest file; std::nullopt if there is none.
  std::optional<std::int64_t> newest_step() const;
  // For a process that exits without destroying this; see FolderLock::release().
  void release();
  std::filesystem::path path() const { return folder_ ? folder_->path() : options_.folder; }
  std::int64_t failures() const { return writer_ ? writer_->record().failures : 0; }

 private:
  std::string find();
  std::int64_t resumed_step() const;  // -1: nothing in the folder precedes this training
  bool agree(bool of_rank_0) const;

  Communicator world_;
  CheckpointOptions options_;
  std::unique_ptr<CheckpointFolder> folder_;  // on rank 0
  std::optional<Checkpoint> found_;
  std::filesystem::path found_in_;
  bool continues_ = false;
  std::unique_ptr<CheckpointWriter> writer_;
  std::optional<CheckpointClock> clock_;
  const WeightSync* divided_ = nullptr;  // null: every rank has the whole state, or begin() was not called
};

}  // namespace lockstep
