// Splits the step time of all ranks into parts, using each rank's own clock only.
//
// An all-reduce ends on all ranks at about the same time. So the times from that moment to each rank's wait for the
// next all-reduces show how late each rank was. Clocks of different ranks are never compared.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "scaling/study.hpp"

namespace lockstep {

// Times of one step on one rank, in seconds.
struct RankStep {
  double input = 0;
  double forward = 0;
  double backward = 0;  // includes `summing`
  double summing = 0;   // all-reduce time within backward
  double waiting = 0;   // for all-reduces, after backward
  double optimizer = 0;
  std::vector<double> sum_begins = {};  // since the start of the step; one per bucket

  double arrival() const { return input + forward + backward + optimizer; }
};

struct StepParts {
  std::array<double, step_part_count> seconds = {};  // mean over ranks
  std::vector<Bucket> buckets;
  std::vector<RankTimes> by_rank;  // without host names
};

// `steps` is indexed by rank; all ranks have equally many. `step_seconds` is the mean time of a step. `bucket_bytes` is
// in the order of the all-reduces.
StepParts split_step_times(std::span<const std::vector<RankStep>> steps, std::span<const std::int64_t> bucket_bytes,
                           double step_seconds);

}  // namespace lockstep
