#include "train/training_outcome.hpp"

namespace lockstep {

std::optional<Failure> failure_of(const TrainingOutcome& outcome) {
  if (outcome.end == End::diverged) return Failure::diverged;
  if (!outcome.is_safe) return Failure::other;
  if (outcome.end == End::stopped) return Failure::stopped_early;
  return std::nullopt;
}

}  // namespace lockstep
