#include "train/evaluation/make_evaluator.hpp"

#include "base/log.hpp"
#include "step/kernel_choice.hpp"

namespace lockstep {
namespace {

// Rank 0's answer, on all ranks.
bool choose_kernels_for(const Session& session, Evaluator& evaluator) {
  bool is_too_large = false;
  choose_kernels(session, [&] {
    try {
      evaluator.rehearse();
    } catch (const Error& error) {
      is_too_large = error.failure() == Failure::out_of_memory && evaluator.batch() > 1;
      if (!is_too_large) throw;
    }
  });
  return session.world.max(is_too_large ? 1 : 0) == 0;
}

}  // namespace

std::unique_ptr<Evaluator> make_evaluator(const Session& session, Model& model, const EvaluatorOptions& options) {
  std::int64_t batch = evaluation_batch(options.dataset.samples(), options.rules.size);
  for (;;) {
    auto evaluator = std::make_unique<Evaluator>(session.world, *session.backend, model, options.dataset, options.rules,
                                                 options.loader_threads, options.place, options.view, batch);
    if (choose_kernels_for(session, *evaluator)) return evaluator;
    const std::int64_t smaller = (batch + 1) / 2;
    log::info("{} samples do not fit into the device's memory. They are evaluated {} at a time", batch, smaller);
    batch = smaller;
  }
}

}  // namespace lockstep
