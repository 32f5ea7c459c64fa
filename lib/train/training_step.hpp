// One optimizer step of one rank: its parts forward and backward, the sum over ranks, the update.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "dataset/loader.hpp"
#include "optim/loss_scaler.hpp"
#include "optim/sgd.hpp"
#include "runtime/session.hpp"
#include "train/gradient_sync.hpp"
#include "train/metrics.hpp"
#include "train/model.hpp"
#include "train/recipe.hpp"

namespace lockstep {

class TrainingStep {
 public:
  // Collective. Weights start as a pure function of `seed`.
  TrainingStep(const Session& session, const ModelOptions& model, const LoaderShare& share, const ReducePlan& reduce,
               const SgdOptions& sgd, float label_smoothing, std::uint64_t seed);

  // Collective. Rank 0 runs one part, and one forward pass on `evaluation_batch` samples, on noise, which makes the
  // device measure its kernels; the others get its choices. Changes no weight. Call once, before the first step.
  void choose_kernels(std::int64_t evaluation_batch);

  // Collective. The next step on what `loader` gives. `step` counts from 0, for the message. Throws Error(diverged), on
  // every rank alike and before any weight changes, if the loss is not finite. With loss scaling, a step in which a
  // gradient of any rank overflows changes nothing but the scale.
  Metrics run(Loader& loader, std::int64_t step, double learning_rate);

  // Scales the loss from the next step on, in half precision from the start; every rank alike.
  void scale_loss(const LossScale& state);
  const std::optional<LossScaler>& loss_scaler() const { return scaler_; }

  Model& model() { return model_; }
  const Model& model() const { return model_; }
  const GradientSync& sync() const { return *sync_; }
  std::string reducer_description() const { return reducer_->description(); }

 private:
  void run_part(const Batch& batch, GradientSink& sink, Accumulate accumulate);
  void rehearse(std::int64_t evaluation_batch);
  float loss_scale() const { return scaler_ ? scaler_->scale() : 1.0F; }

  const Session& session_;
  Device& device_;
  LoaderShare share_;
  float label_smoothing_;
  Model model_;
  std::unique_ptr<AllReducer> reducer_;
  std::unique_ptr<GradientSync> sync_;
  std::unique_ptr<Sgd> sgd_;
  std::optional<LossScaler> scaler_;
};

}  // namespace lockstep
