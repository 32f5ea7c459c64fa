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
};

struct TrainingOutcome {
  End end = End::done;
  bool is_safe = true;     // nothing is lost: stopped with a checkpoint, or done with all results written
  std::string sentence;    // for people; empty if done and safe
  std::int64_t steps = 0;  // steps done in all attempts
  std::int64_t epochs = 0;
  double test_loss = 0;  // of the last test; 0 before the first one
  double test_accuracy = 0;
  std::string weights_hash;          // empty if stopped before the first step
  std::filesystem::path checkpoint;  // the last safe checkpoint; empty if there is none
};

// The failure with which a program exits that runs only this training; std::nullopt for success. An early stop counts
// as a failure of its own kind.
std::optional<Failure> failure_of(const TrainingOutcome& outcome);

}  // namespace lockstep
