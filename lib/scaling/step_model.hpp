// What a step takes at rank counts that were not measured, from those that were.
//
// Computing is a line in the samples of a rank, and grows with the ranks that share a node. Sums of buckets take what
// SumModel says; how much of that backward hides lies between all that a schedule allows and nothing, as measured.
// Ranks that are late by chance are waited for: that grows as the largest of so many draws does (expected_maximum).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "scaling/study.hpp"
#include "scaling/sum_model.hpp"

namespace lockstep {

// Sums of buckets that are started as backward fills them, one after another.
struct Exposure {
  double overlapped = 0;  // seconds beyond backward, where sums go on beside it
  double after = 0;       // seconds of all sums: where they begin when backward has ended

  double hideable() const { return after - overlapped; }
};
Exposure exposure_of(std::span<const Bucket> buckets, double backward_seconds,
                     const std::function<double(std::int64_t bytes)>& sum_seconds);

// The same gradients in buckets of `bytes`. The last one stays, for nothing hides it.
std::vector<Bucket> cut_anew(std::span<const Bucket> buckets, std::int64_t bytes);

struct StepSetting {
  RankGrid grid;
  std::int64_t batch_per_rank = 1;
  std::optional<std::int64_t> bucket_bytes = {};  // none: as measured
};

// Seconds of a step.
struct StepPrediction {
  Interval step;
  double computing = 0;
  double exposed = 0;
  double imbalance = 0;
  double rest = 0;
};

struct StepModel {
  SumModel sums;
  Regression computing;       // seconds by (1, samples, samples times further ranks on the node)
  Regression rest;            // likewise: waiting for samples, optimizer, everything else
  Regression imbalance;       // seconds by (seconds of computing times expected_maximum())
  Regression hidden;          // seconds of sums by (what a schedule allows to hide)
  double backward_share = 0;  // of computing
  std::vector<Bucket> buckets;
  int most_ranks = 0;  // that it was fitted on

  bool covers(const RankGrid& grid) const { return sums.covers(grid); }
  // Call where the grid is covered.
  StepPrediction predict(const StepSetting& setting) const;
};

// From the points of at most `most_ranks` ranks. Nothing where none of them has several ranks, or where the device does
// not tell what a step's time goes to.
std::optional<StepModel> fit_steps(const Study& study, int most_ranks);

// The size of buckets, in powers of two from 1 to 64 MiB, whose steps are predicted to be shortest.
struct BucketAdvice {
  std::int64_t bytes = 0;
  double gain = 0;  // of a step as measured, as a share
};
BucketAdvice advise_bucket(const StepModel& model, StepSetting setting);

}  // namespace lockstep
