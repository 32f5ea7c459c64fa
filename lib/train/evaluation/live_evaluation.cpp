#include "train/evaluation/live_evaluation.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"

namespace lockstep {

Evaluation evaluate_live(Evaluator& evaluator, Split split, std::int64_t samples) {
  if (!log::is_terminal()) return evaluator.evaluate();
  const Stopwatch watch;
  return evaluator.evaluate([&](std::int64_t judged) {
    log::progress(describe_progress(split_name(split), judged, samples, "samples", watch.seconds()));
  });
}

}  // namespace lockstep
