// How a training ended, the same on every rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace lockstep {

enum class End : std::uint8_t {
  done,      // all epochs
  stopped,   // as it was asked to, or out of time: it can go on
  diverged,  // its loss or its gradients left the numbers
};

struct TrainingOutcome {
  End end = End::done;
  bool is_safe = true;     // nothing is lost: stopped with a checkpoint, or done with all written that was to be
  std::string sentence;    // for people; empty where it is done and safe
  std::int64_t steps = 0;  // done, in all attempts
  std::int64_t epochs = 0;
  double test_loss = 0;  // of the last test; 0 before the first
  double test_accuracy = 0;
  std::string weights_hash;          // empty where it was stopped before the first step
  std::filesystem::path checkpoint;  // the last one that is safe; empty: none is
};

// As what a program that did nothing else fails; nothing: it does not. An early stop counts as a failure of its own.
std::optional<Failure> failure_of(const TrainingOutcome& outcome);

}  // namespace lockstep
