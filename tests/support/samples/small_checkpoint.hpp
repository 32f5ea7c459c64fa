// A checkpoint in miniature, for tests of files and folders.
#pragma once

#include "files/checkpoint/checkpoint.hpp"

namespace lockstep {

inline Checkpoint small_checkpoint(std::int64_t step = 12) {
  Checkpoint checkpoint;
  checkpoint.model = {"lenet",
                      {"cat", "dog", "Ärmel"},
                      {32, 32, 3},
                      {0.49F, 0.48F, 0.45F},
                      {0.2F, 0.25F, 0.26F},
                      {{"conv1.weight", {2, 1, 3, 1}, {1, 2, 3, 4, 5, 6}}, {"fc.bias", {3}, {-1, 0.5F, 1e-30F}}}};
  checkpoint.optimizer["velocity"] = {{"conv1.weight", {2, 1, 3, 1}, {6, 5, 4, 3, 2, 1}},
                                      {"fc.bias", {3}, {0, -0.0F, 7}}};
  TrainingState& state = checkpoint.state;
  state.progress = {step, step / 5, step * 60, step / 5 * 5};
  state.report = {{2.0 / 3.0, 17, 120}, 11.25, step * 60, 12.25, 11.5, 1.0 / 3.0, 0.875, 0.75};
  state.loss_scale = LossScale{32768, 7, 1};
  state.recipe = {{"model", "lenet"}, {"global_batch", 60}, {"learning_rate", 0.1}};
  state.origin = {2, "cpu: some, 1 thread", "mpi", "some", {{"HDF5", "1.10.8"}, {"lockstep", "0.1"}}};
  state.kernel_plan = "conv 1 = direct\nconv 2 = winograd\n";
  state.scores = {{5, 0.5}, {10, 0.875}};
  return checkpoint;
}

}  // namespace lockstep
