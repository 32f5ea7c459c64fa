// What the steps of all ranks went to, from what each rank saw by its own clock alone.
//
// A sum ends for all ranks at about the same moment: so how long each took since then until its wait for the next sums
// tells who came how much later, and no clocks are compared.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "scaling/study.hpp"

namespace lockstep {

// Seconds of one step of one rank.
struct RankStep {
  double input = 0;
  double forward = 0;
  double backward = 0;  // with what sums took in it
  double summing = 0;   // of that
  double waiting = 0;   // for sums, after backward
  double optimizer = 0;
  std::vector<double> sum_begins = {};  // since the step's begin; one for each bucket

  double arrival() const { return input + forward + backward + optimizer; }
};

struct StepParts {
  std::array<double, step_part_count> seconds = {};  // of the mean rank
  std::vector<Bucket> buckets;
  std::vector<RankTimes> by_rank;  // without hosts
};

// `steps` by rank, as many of each; `step_seconds`: their mean by the clock. `bucket_bytes` in the order of sums.
StepParts take_apart(std::span<const std::vector<RankStep>> steps, std::span<const std::int64_t> bucket_bytes,
                     double step_seconds);

}  // namespace lockstep
