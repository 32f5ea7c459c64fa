// model-best.h5: the weights of a training's best test. model.h5 has the final weights. Used on rank 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "files/folder/folder_lock.hpp"
#include "files/model_file.hpp"

namespace lockstep {

class BestModel {
 public:
  // Writes into the folder of `output`, which outlives this.
  explicit BestModel(FolderLock& output) : output_(output) {}

  // Call when a training starts or resumes. Unless the file is of `best_step` (0: no test yet), writes it from that
  // step's checkpoint in `checkpoints`. Without such a checkpoint there is no file until the next best test.
  void begin(std::int64_t best_step, const std::filesystem::path& checkpoints);

  // Call after the best test so far. If writing fails, warns once, and the training continues.
  void keep(ModelFile model);
  // Retries a failed write.
  void write();

 private:
  std::filesystem::path file() const;

  FolderLock& output_;
  std::optional<ModelFile> unwritten_;
  bool has_warned_ = false;
};

}  // namespace lockstep
