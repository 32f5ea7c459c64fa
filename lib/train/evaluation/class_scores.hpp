// Which classes an evaluation found difficult, and what their samples were taken for.
#pragma once

#include <cstdint>
#include <vector>

#include "train/evaluation/evaluation.hpp"

namespace lockstep {

struct Confusion {
  std::int64_t label;
  std::int64_t prediction;
  std::int64_t samples;
};
// All pairs of label and wrong prediction, the most frequent first. Ties are ordered by label, then by prediction.
std::vector<Confusion> confusions_of(const Evaluation& evaluation);

// Classes with samples, by increasing accuracy. Ties are ordered by class index.
struct ClassScore {
  std::int64_t label;
  std::int64_t samples;
  std::int64_t correct;
  std::int64_t predicted;  // samples of any class with this prediction
};
std::vector<ClassScore> worst_classes(const Evaluation& evaluation);

}  // namespace lockstep
