// A folder of checkpoints named by their steps: finds the newest valid one, writes the next, and removes those that
// need not be kept. Use it on one rank only.
//
//   step-000000000312.h5    a checkpoint after 312 steps; see run/checkpoint_files.hpp
//   lock                    the current owner of the folder; see folder_lock.hpp
//   set-aside-1/            later files that a training found when it started at an earlier step
//   .*.lockstep-partial     an incomplete file of a killed run: never a checkpoint, removed at the next start
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "files/checkpoint/checkpoint.hpp"
#include "files/checkpoint/stream_file.hpp"
#include "files/folder/folder_lock.hpp"
#include "recipe/checkpoint_options.hpp"

namespace lockstep {

// The step of a checkpoint, from the bytes of the file `path`, which may be changed. Throws Error if they are damaged.
using StepOfCheckpoint = std::function<std::int64_t(const std::filesystem::path& path, std::string& image)>;
std::int64_t step_of_training(const std::filesystem::path& path, std::string& image);

class CheckpointFolder {
 public:
  struct Found {
    std::filesystem::path path;
    std::string image;  // the file's bytes, verified
  };

  // The folder of `lock`. Nothing in it changes before resume_after(). `step_of` reads the kind of checkpoint that is
  // kept here.
  CheckpointFolder(std::shared_ptr<FolderLock> lock, const KeepRule& keep, StepOfCheckpoint step_of = step_of_training);

  // Whether the file lies in this folder.
  bool has(const std::filesystem::path& file) const;

  // Skips damaged checkpoints with a warning. Throws Error(bad_data) if there are checkpoints and all are damaged.
  std::optional<Found> newest_valid();

  // Whether there are checkpoints of later steps.
  bool has_after(std::int64_t step) const;

  // Call once, before the first write(). The training continues after `step` (-1: from the beginning), with the
  // `scores` of that step's checkpoint. Moves checkpoints of later steps into a separate folder, because the next start
  // would otherwise take one of them for this training's. Removes incomplete files of an earlier run, with a warning.
  void resume_after(std::int64_t step, const std::map<std::int64_t, double>& scores);
  // The same without scores, for a training that resumes from the checkpoint of step `copied` in another folder, or in
  // this one. Writes its bytes, `image`, under that step. Calls `take_over` once they are on the disk, before any
  // checkpoint is moved. If writing fails, nothing has changed.
  void resume_with_copy(std::int64_t step, std::int64_t copied, std::span<const std::byte> image,
                        const std::function<void()>& take_over);

  // Adds the scores of the kept checkpoints to `checkpoint`, writes it under its step, and removes the checkpoints that
  // no rule keeps. Returns its path. Throws Error(out_of_step) if the lock is lost, and Error as
  // write_file_atomically().
  std::filesystem::path write(Checkpoint checkpoint);
  // The same with the tensors of `sync`, see stream_checkpoint().
  std::filesystem::path write(Checkpoint checkpoint, const WeightSync& sync);
  // The same with content that `content` writes, see stream_file().
  std::filesystem::path write(std::int64_t step, const WriteContent& content);

  // The newest intact checkpoint whose weights are all finite; empty if there is none. A diverging training may have
  // written others.
  std::filesystem::path newest_finite() const;

  const std::filesystem::path& path() const { return lock_->folder(); }
  void release() { lock_->release(); }  // see FolderLock

 private:
  std::filesystem::path file_of(std::int64_t step) const;
  std::set<std::int64_t> steps() const;  // of all checkpoints in the folder
  std::filesystem::path write(std::int64_t step, std::span<const std::byte> image);
  void remove_incomplete() const;
  void set_later_aside(std::int64_t step);
  void complete_scores(TrainingState& state);
  void keep_written(std::int64_t step);
  std::set<std::int64_t> kept(const std::set<std::int64_t>& steps) const;

  std::shared_ptr<FolderLock> lock_;
  KeepRule keep_;
  StepOfCheckpoint step_of_;
  std::set<std::int64_t> damaged_;  // steps
  std::set<std::int64_t> own_;      // steps to which the rules apply: written by this training, or valid when it began
  std::map<std::int64_t, double> scores_;
};

}  // namespace lockstep
