// One optimizer step of one rank: its micro-batches forward and backward, the sum over ranks, the update.
//
// On a device that works on its own the host runs ahead: start() queues a step, finish() tells of the oldest one later,
// so that nothing waits within an epoch. From the second step on a GPU repeats what it recorded (CapturedGraph):
//
//   sums by            recorded                                               called every step
//   NCCL               forward, backward, sums, update: one graph             upload of the batch
//   through the host   forward and backward; the update                       upload of the batch, sums
//
// With several micro-batches the first one, those between and the last one are graphs of their own.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/session.hpp"
#include "dataset/loading/loader.hpp"
#include "device/flat/step_record.hpp"
#include "optim/ema.hpp"
#include "optim/optimizer.hpp"
#include "runtime/plan_file.hpp"
#include "step/exchange.hpp"
#include "step/metrics.hpp"
#include "step/model.hpp"
#include "step/state_lock.hpp"

namespace lockstep {

// What came of a step.
struct StepResult {
  std::int64_t step = 0;
  double learning_rate = 0;
  Metrics metrics;
  bool skipped = false;        // a gradient of some rank overflowed, and no weight changed
  double loss_scale = 1;       // of the next step
  double gradient_norm = 0;    // before clipping; 0 where gradients are not clipped
  bool asked_to_stop = false;  // of some rank, by request_stop() before the step
  std::string divergence;      // why the training is over, in a sentence; empty: it goes on
};

class TrainingStep {
 public:
  // All outlive this. The exchange has laid out the model's store, which the optimizer updates and the mean follows.
  TrainingStep(const Session& session, Model& model, Exchange& exchange, Optimizer& optimizer, const LoaderShare& share,
               float label_smoothing, Ema* mean = nullptr, NormGroup* norm_group = nullptr);

  // Collective. Where kernels are chosen by measuring, rank 0 runs one micro-batch, and a forward pass on each number
  // of samples of `evaluation_batches`, on noise, which makes the device measure its kernels, those that an earlier run
  // measured excepted; the others get its choices. `micro-batches`: what samples micro-batches have, where not as the
  // model's. Changes no weight. Call once, before the first step.
  void choose_kernels(const std::vector<std::int64_t>& evaluation_batches,
                      const std::vector<SampleShape>& micro_batches = {});

  // The next step is called as the first one was, and recorded anew after it: call where no step is under way and the
  // batches that follow are of another size, or in other memory.
  void discard_graphs();

  // Collective, stream-ordered. The next step on what `loader` gives, which is on the device. `step` counts from 0. At
  // most Device::steps_ahead() steps are under way before.
  void start(Loader& loader, std::int64_t step, double learning_rate);
  // Collective. Waits for the oldest step under way and tells of it, every rank alike. The training has diverged if its
  // loss is not finite, or if gradients overflow and no smaller loss scale can help: no weight changes from that step
  // on, whatever is still under way. A step in which a gradient overflows otherwise changes nothing but the scale.
  StepResult finish();
  int steps_under_way() const { return static_cast<int>(under_way_.size()); }
  StepResult run(Loader& loader, std::int64_t step, double learning_rate);  // start() and finish()

  // On a device that does not run ahead: `lock`, which is held between steps and outlives this, is let go of from the
  // start of a step to its update.
  void share_state(StateLock* lock) { state_ = lock; }

  // Tells every rank, through the results of the next step, that this one was asked to stop. Call between two steps.
  void request_stop();

  // Scales the loss from the next step on; every rank alike. In half precision that is so from the start; elsewhere
  // call it before the first step.
  void scale_loss(const LossScale& state);
  // Where a training goes on: so many steps were applied before the first one here, skipped ones left out.
  void set_applied_steps(std::int64_t steps) { record_.set_applied_steps(steps); }
  // As it stands; none without loss scaling. Waits for the device.
  std::optional<LossScale> loss_scale() const;
  const PlanUse& plan_use() const { return plan_use_; }  // of rank 0's kernels; zero elsewhere

  Model& model() { return model_; }
  const Model& model() const { return model_; }
  const Exchange& exchange() const { return exchange_; }

 private:
  enum MicroBatchKind : std::uint8_t { first_micro_batch, middle_micro_batch, last_micro_batch, micro_batch_kinds };
  struct UnderWay {
    std::int64_t step;
    double learning_rate;
    std::unique_ptr<Readback> record;
  };

  void queue_micro_batch(const Batch& batch, int micro_batch);
  void run_micro_batch(const Batch& batch, GradientSink& sink, Accumulate accumulate);
  void update();
  void rehearse(const std::vector<std::int64_t>& evaluation_batches, const std::vector<SampleShape>& micro_batches);
  std::unique_ptr<Readback> spare_readback();

  const Session& session_;
  Device& device_;
  Model& model_;
  Exchange& exchange_;
  Optimizer& optimizer_;
  Ema* mean_;              // null: none is kept
  NormGroup* norm_group_;  // null: each micro-batch has statistics of its own
  LoaderShare share_;
  float label_smoothing_;
  StepRecord record_;
  bool scales_loss_ = false;
  std::array<std::unique_ptr<CapturedGraph>, micro_batch_kinds> micro_batch_graphs_;
  std::unique_ptr<CapturedGraph> update_graph_;  // where the host exchanges in between
  std::deque<UnderWay> under_way_;               // oldest first
  std::vector<std::unique_ptr<Readback>> spare_;
  PlanUse plan_use_;
  StateLock* state_ = nullptr;  // null: nobody else reads it
};

}  // namespace lockstep
