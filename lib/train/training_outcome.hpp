// Outcome of a training, the same on every rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace lockstep {

enum class End : std::uint8_t {
  done,      // all epochs or steps completed
  stopped,   // on request or out of time: can be resumed
  diverged,  // the loss or the gradients are not finite
  failed,    // the work of a rank failed, or all ranks refused the training
};

struct TrainingOutcome {
  End end = End::done;
  // With which a program exits that runs only this training; std::nullopt: done, and all results are written. A stop
  // counts as a failure of its own kind.
  std::optional<Failure> failure;
  int rank = -1;           // of the job: the rank that failed, otherwise the training's rank 0
  std::string sentence;    // why, for people; empty without a failure
  double time = 0;         // of the end, in seconds since 1970 by that rank's clock
  std::int64_t steps = 0;  // steps done in all attempts; 0 if the end is `failed`
  std::int64_t epochs = 0;
  double test_loss = 0;  // of the last test; 0 before the first one
  double test_accuracy = 0;
  std::string weights_hash;          // empty if stopped before the first step, or failed
  std::filesystem::path checkpoint;  // the last safe checkpoint; empty if there is none or the end is `failed`
};

}  // namespace lockstep
