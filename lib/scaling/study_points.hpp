// Which rank counts and batches a study measures.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct PlannedPoint {
  int ranks;
  std::int64_t batch_per_rank;

  bool operator==(const PlannedPoint&) const = default;
};

// 1, 2, 4, ... and all ranks.
std::vector<int> usual_rank_counts(int ranks);

// The weak batch, or as few samples more as divide among each of these rank counts.
std::int64_t usual_strong_batch(std::int64_t weak_batch, std::span<const int> rank_counts);

// Weak and strong scaling over rank counts of a job of `ranks`, each point once. Throws Error(usage) where a count is
// larger than the job, or the strong batch does not divide.
std::vector<PlannedPoint> plan_points(std::span<const int> rank_counts, int ranks, std::int64_t weak_batch,
                                      std::int64_t strong_batch);

}  // namespace lockstep
