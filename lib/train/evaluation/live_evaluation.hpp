// A test that people watch.
#pragma once

#include <cstdint>

#include "dataset/split.hpp"
#include "train/evaluation/evaluation.hpp"

namespace lockstep {

// Collective. evaluator.evaluate(), with a live line of the split's name and so many samples on a terminal.
Evaluation evaluate_live(Evaluator& evaluator, Split split, std::int64_t samples);

}  // namespace lockstep
