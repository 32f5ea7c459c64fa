// Chooses the rank counts and batches that a study measures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scaling/study.hpp"

namespace lockstep {

struct PlannedPoint {
  int ranks;
  std::int64_t batch_per_rank;
  StudySetup setup = {};

  bool operator==(const PlannedPoint&) const = default;
};

// 1, 2, 4, ... and `ranks`.
std::vector<int> default_rank_counts(int ranks);

// The weak batch, rounded up to a multiple of each of these rank counts.
std::int64_t default_strong_batch(std::int64_t weak_batch, std::span<const int> rank_counts);

struct SweptValues {
  std::vector<std::int64_t> threads;
  std::vector<std::int64_t> bucket_mib;
  std::vector<std::string> precision;
  std::vector<Exchange> exchange;
};

// One point for each non-default value; all other settings keep their defaults. Throws Error(usage) if servers leave no
// trainer.
std::vector<PlannedPoint> plan_sweeps(const PlannedPoint& base, const SweptValues& values);

// Weak and strong scaling over the rank counts of a job of `ranks`, without duplicates. Throws Error(usage) if a count
// exceeds `ranks`, or if it does not divide the strong batch.
std::vector<PlannedPoint> plan_points(std::span<const int> rank_counts, int ranks, std::int64_t weak_batch,
                                      std::int64_t strong_batch);

}  // namespace lockstep
