// Evaluation with a progress line.
#pragma once

#include <cstdint>

#include "dataset/split.hpp"
#include "train/evaluation/evaluation.hpp"

namespace lockstep {

// Collective. Calls evaluator.evaluate() and shows a progress line on a terminal, with the name of the split and
// `samples`.
Evaluation evaluate_live(Evaluator& evaluator, Split split, std::int64_t samples);

}  // namespace lockstep
