// model-best.h5: the weights of a training's best test. model.h5 has the final weights. Used on rank 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "files/folder/folder_lock.hpp"
#include "files/model_file.hpp"
#include "train/loop/observer.hpp"

namespace lockstep {

class BestModel final : public TrainingObserver {
 public:
  // Writes into the folder of `output`, which outlives this. Unless the file is of `best_step` (0: no test yet), writes
  // it from that step's checkpoint in `checkpoints`. Without such a checkpoint there is no file until the next best
  // test.
  BestModel(FolderLock& output, std::int64_t best_step, const std::filesystem::path& checkpoints);

  // After the best test so far, keeps the weights. If writing fails, warns once, and tries again after the next test
  // and at the end of a completed training.
  void on_tested(const TrainingView& training) override;
  void on_end(const TrainingOutcome& outcome) override;

 private:
  std::filesystem::path file() const;
  void write();

  FolderLock& output_;
  std::optional<ModelFile> unwritten_;
  bool has_warned_ = false;
};

}  // namespace lockstep
