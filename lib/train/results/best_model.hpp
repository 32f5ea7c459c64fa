// model-best.h5: the weights of a training's best test, beside model.h5, which has those of its end. Rank 0's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "files/folder/folder_lock.hpp"
#include "files/model_file.hpp"

namespace lockstep {

class BestModel {
 public:
  // In the folder of `output`, which outlives this.
  explicit BestModel(FolderLock& output) : output_(output) {}

  // Where a training begins, or goes on: unless the file is of `best_step` (0: of none) it is written from the
  // checkpoint of that step in `checkpoints`. Without such a checkpoint there is none until the next best test.
  void begin(std::int64_t best_step, const std::filesystem::path& checkpoints);

  // After the best test so far. Where it cannot be written that is told once, and the training goes on.
  void keep(ModelFile model);
  // What could not be written before.
  void write();

 private:
  std::filesystem::path file() const;

  FolderLock& output_;
  std::optional<ModelFile> unwritten_;
  bool has_warned_ = false;
};

}  // namespace lockstep
