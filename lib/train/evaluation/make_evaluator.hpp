// An evaluator with kernels and a batch for the device's memory, for programs that do not train.
#pragma once

#include <memory>

#include "backend/session.hpp"
#include "train/evaluation/evaluation.hpp"

namespace lockstep {

struct EvaluatorOptions {
  const Dataset& dataset;
  ImageRules rules;
  int loader_threads = 1;
  DataPlace place = DataPlace::automatic;
  TestTimeAugmentation view = TestTimeAugmentation::plain;
};

// Collective. If the device measures kernels, rank 0 rehearses a batch to choose them, see choose_kernels(). If the
// rehearsal does not fit into memory, all ranks take half the batch, and so on. The dataset, `session` and `model`
// outlive the result.
std::unique_ptr<Evaluator> make_evaluator(const Session& session, Model& model, const EvaluatorOptions& options);

}  // namespace lockstep
