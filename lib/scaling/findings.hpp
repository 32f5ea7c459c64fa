// The conclusions of a scaling study, as sentences. Each follows from the study's numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "scaling/step_model.hpp"
#include "scaling/study.hpp"

namespace lockstep {

// The loss of a rank's throughput between `base` and a point, and its parts, as shares of the point's step time. A part
// is negative if something became faster.
struct Loss {
  Interval whole;
  std::array<double, step_part_count> parts = {};
};
Loss loss_between(const StudyPoint& base, const StudyPoint& point);

enum class LossCause : std::uint8_t {
  too_noisy,  // repeats differ by more than the loss to be judged
  none,
  loss,       // how much is lost, and to what
  latency,    // of all-reduces
  bandwidth,  // of all-reduces
  slow_rank,
  uneven_ranks,  // no rank in particular is slow
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

// For each kind of scaling with several rank counts, judges the largest: first how much is lost, then the causes, by
// decreasing cost.
std::vector<ScalingFinding> judge(const Study& study);

// One sentence for each value that was varied alone, compared with the default value.
std::vector<std::string> judge_sweeps(const Study& study);

// The accuracy cost of larger batches compared with the smallest one, and the missing trainings.
std::vector<std::string> judge_accuracy(const Study& study);

// A prediction for the largest rank count, from a model fitted to the smaller ones.
struct CheckedPrediction {
  Scaling scaling;
  RankGrid grid;
  int fitted_up_to = 0;          // ranks
  Interval predicted;            // seconds per step
  double measured = 0;           // seconds per step
  std::string oversubscription;  // ", and 4 ranks share 2 cores", which the model ignores; else empty
  double error() const { return predicted.middle / measured - 1; }
  std::string sentence() const;
};
// Empty if too few rank counts were measured.
std::vector<CheckedPrediction> check_predictions(const Study& study);

}  // namespace lockstep
