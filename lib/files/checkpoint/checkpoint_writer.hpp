// Writes checkpoints on a separate thread, so that no step waits for a disk. While a checkpoint is being written, only
// that thread calls HDF5.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "files/checkpoint/checkpoint_folder.hpp"

namespace lockstep {

// Calls `write`. If it fails, warns that `what`, such as "the checkpoint of step 100", was not written, but that the
// training continues. Returns why; empty: it was written. Only a lost lock, Error(out_of_step), passes.
std::string write_or_warn(const std::string& what, const std::function<void()>& write);

class CheckpointWriter {
 public:
  // `folder` must outlive this. While a checkpoint is being written, the folder belongs to the thread.
  explicit CheckpointWriter(CheckpointFolder& folder) : folder_(folder) {}
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  ~CheckpointWriter() { wait(); }

  bool is_idle() const { return is_idle_.load(std::memory_order_acquire); }
  // Call only when idle. A failure is logged as a warning at once and recorded. Only a lost lock ends the program.
  void start(Checkpoint checkpoint);
  void wait();
  // Writes in this thread, with the tensors of `sync`; see stream_checkpoint(). Otherwise as start().
  void write_now(Checkpoint checkpoint, const WeightSync& sync);

  // The results so far. Read only when idle.
  struct Record {
    std::int64_t step = -1;  // of the last one that was written
    std::filesystem::path path;
    std::string failure;        // of the last attempt; empty if it succeeded
    std::int64_t failures = 0;  // in total
  };
  const Record& record() const { return record_; }
  // The longest time that a checkpoint took so far. Thread-safe.
  double longest_seconds() const { return longest_seconds_.load(std::memory_order_relaxed); }

 private:
  void attempt(std::int64_t step, const std::function<std::filesystem::path()>& write);

  CheckpointFolder& folder_;
  std::atomic<bool> is_idle_ = true;
  std::atomic<double> longest_seconds_ = 0;
  Record record_;
  std::thread thread_;
};

}  // namespace lockstep
