// Writes checkpoints on a thread of its own, so that no step waits for a disk. While one is under way that thread alone
// calls HDF5.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "files/checkpoint/checkpoint_folder.hpp"

namespace lockstep {

class CheckpointWriter {
 public:
  // `folder` outlives this; while a checkpoint is under way it belongs to the thread.
  explicit CheckpointWriter(CheckpointFolder& folder) : folder_(folder) {}
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  ~CheckpointWriter() { wait(); }

  bool is_idle() const { return is_idle_.load(std::memory_order_acquire); }
  // Only when idle. What goes wrong is said in a warning at once and remembered; only a lost lock ends the program.
  void start(Checkpoint checkpoint);
  void wait();

  // Of what was written so far; ask only when idle.
  struct Record {
    std::int64_t step = -1;  // of the last one that was written
    std::filesystem::path path;
    std::string failure;        // of the last one; empty: it was written
    std::int64_t failures = 0;  // in all
  };
  const Record& record() const { return record_; }
  // That writing one took so far; ask at any time.
  double longest_seconds() const { return longest_seconds_.load(std::memory_order_relaxed); }

 private:
  void write(Checkpoint checkpoint);

  CheckpointFolder& folder_;
  std::atomic<bool> is_idle_ = true;
  std::atomic<double> longest_seconds_ = 0;
  Record record_;
  std::thread thread_;
};

}  // namespace lockstep
