// A folder of checkpoints, named by their step: finding the newest good one, writing the next, keeping the right ones.
// For one rank only.
//
//   step-000000000312.h5    a checkpoint after 312 steps
//   lock                    whose folder it is now; see folder_lock.hpp
//   set-aside-1/            what a training that started at an earlier step found
//   .*.lockstep-partial     what a killed run left half written: never a checkpoint, removed at the next start
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "files/checkpoint/checkpoint.hpp"
#include "files/folder/folder_lock.hpp"
#include "recipe/checkpoint_options.hpp"

namespace lockstep {

// All checkpoints in a folder, damaged ones included, by their step; none where it cannot be listed.
std::map<std::int64_t, std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

class CheckpointFolder {
 public:
  struct Found {
    std::filesystem::path path;
    std::string image;  // the file's bytes, verified
  };

  // The folder of `lock`. Changes nothing in it before continue_after().
  CheckpointFolder(std::shared_ptr<FolderLock> lock, const KeepRule& keep);

  // Damaged ones are named in warnings and passed over. Throws Error(bad_data) if there are some and all are damaged.
  std::optional<Found> newest_good();

  // Call once, before the first write(): the training goes on after `step` (-1: from the beginning), with `scores` as
  // the checkpoint of that step has them. Checkpoints of later steps are moved into a folder of their own: otherwise
  // the next start would take one of them for this training's. Removes what an earlier run left half written, naming
  // it. Returns whether there were checkpoints of later steps.
  bool continue_after(std::int64_t step, const std::map<std::int64_t, double>& scores);

  // Adds the scores of what is kept to `checkpoint`, writes it under its step, and removes what no rule keeps. Returns
  // its path. Throws Error(out_of_step) if the lock is lost, else Error as write_file_atomically().
  std::filesystem::path write(Checkpoint checkpoint);

  // The newest whole one whose weights are finite numbers; empty if there is none. A training that diverges may have
  // written others.
  std::filesystem::path newest_finite() const;

  const std::filesystem::path& path() const { return lock_->folder(); }
  void give_back() { lock_->give_back(); }  // see FolderLock

 private:
  std::filesystem::path file_of(std::int64_t step) const;
  std::set<std::int64_t> steps() const;  // of all checkpoints here
  std::set<std::int64_t> kept(const std::set<std::int64_t>& steps) const;

  std::shared_ptr<FolderLock> lock_;
  KeepRule keep_;
  std::set<std::int64_t> damaged_;  // steps
  std::set<std::int64_t> own_;      // steps that rules count: written by this training, or good when it began
  std::map<std::int64_t, double> scores_;
};

}  // namespace lockstep
