// What a study says, in sentences. Each one comes from numbers of the study.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "scaling/step_model.hpp"
#include "scaling/study.hpp"

namespace lockstep {

// What a rank's throughput loses between `base` and a point, and to what: shares of the point's step. Parts may be
// below 0, where something became cheaper.
struct Loss {
  Interval whole;
  std::array<double, step_part_count> parts = {};
};
Loss loss_between(const StudyPoint& base, const StudyPoint& point);

enum class LossCause : std::uint8_t {
  too_noisy,  // repeats differ by more than what is to be judged
  all_well,
  loss,       // how much is lost, and to what
  latency,    // of sums
  bandwidth,  // of sums
  slow_rank,
  uneven_ranks,  // none of them in particular
  slow_input,
  slow_computing,  // ranks disturb each other, or a rank's batch is too small
  update,          // the optimizer, whose work does not shrink with a rank's batch
};

struct ScalingFinding {
  Scaling scaling;
  int ranks;
  LossCause cause;
  std::string sentence;
};

// Of each kind of scaling with several rank counts, at the largest: first how much is lost, then why, the dearest cause
// first.
std::vector<ScalingFinding> judge(const Study& study);

// What each value that was varied alone gives beside the usual one, in a sentence each.
std::vector<std::string> judge_sweeps(const Study& study);

// What larger batches cost in accuracy beside the smallest one, and which trainings are missing.
std::vector<std::string> judge_accuracy(const Study& study);

// Of the largest rank count, from a model that was fitted on the smaller ones.
struct CheckedPrediction {
  Scaling scaling;
  RankGrid grid;
  int fitted_up_to = 0;  // ranks
  Interval predicted;    // seconds of a step
  double measured = 0;   // likewise
  std::string crowd;     // ", and 4 ranks share 2 cores", which the model does not know; else empty
  double error() const { return predicted.middle / measured - 1; }
  std::string sentence() const;
};
// None where too few rank counts were measured.
std::vector<CheckedPrediction> check_predictions(const Study& study);

}  // namespace lockstep
