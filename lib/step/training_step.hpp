// One optimizer step of one rank: forward and backward of its micro-batches, the sum over ranks, the update.
//
// On a device with its own queue the host runs ahead. start() queues a step and finish() returns the result of the
// oldest one, so nothing waits within an epoch. From the second step on, a GPU replays captured graphs (CapturedGraph):
//
//   reduction         captured                                               called every step
//   NCCL              forward, backward, reduction, update: one graph        upload of the batch
//   through the host  forward and backward; the update                       upload of the batch, reduction
//
// With several micro-batches, the first, the middle ones and the last have separate graphs.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/session.hpp"
#include "dataset/loading/loader.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/plan_file.hpp"
#include "step/metrics.hpp"
#include "step/model.hpp"
#include "step/state_lock.hpp"
#include "step/weight_sync.hpp"

namespace lockstep {

// Result of a step.
struct StepResult {
  std::int64_t step = 0;
  double learning_rate = 0;  // of its last update
  Metrics metrics;
  bool skipped = false;        // a gradient overflowed on some rank, so no weight changed
  double loss_scale = 1;       // for the next step
  double gradient_norm = 0;    // before clipping; 0 without clipping
  bool asked_to_stop = false;  // some rank called request_stop() before the step
  std::string divergence;      // why the training has diverged, as a sentence; empty if it continues
};

class TrainingStep {
 public:
  // All arguments outlive this. `sync` has allocated the model's store.
  TrainingStep(const Session& session, Model& model, WeightSync& sync, const LoaderShare& share, float label_smoothing,
               NormGroup* norm_group = nullptr, std::uint64_t seed = 0);

  // Collective. If kernels are chosen by measurement, rank 0 measures and broadcasts its choices. It runs one
  // micro-batch and, for each batch size in `evaluation_batches`, a forward pass, all on noise. Kernels that an earlier
  // run measured are not measured again. `micro_batches`: the sample shapes of micro-batches, if they differ from the
  // model's. Changes no weight. Call once, before the first step.
  void choose_kernels(const std::vector<std::int64_t>& evaluation_batches,
                      const std::vector<SampleShape>& micro_batches = {});

  // Discards the captured graphs; they are captured again after the next step. Call when no step is in flight and the
  // following batches have another size or other memory.
  void discard_graphs();

  // Collective, stream-ordered. Queues the next step on the loader's next batches, which are on the device. `step`
  // counts from 0. At most Device::steps_ahead() steps may be in flight before the call. If this rank has failed, it
  // takes part in the sums only, and no rank changes its weights. `learning_rates`: of each micro-batch if each is an
  // update, else one; the last one is of all that follow.
  void start(Loader& loader, std::int64_t step, std::span<const double> learning_rates);
  void start(Loader& loader, std::int64_t step, double learning_rate) { start(loader, step, {&learning_rate, 1}); }
  // Failures of this rank in and between steps. A step keeps its own there if the host computes it, without
  // synchronized batch norm; otherwise they pass.
  ContainedFailure& failure() { return failure_; }
  // Collective. Waits for the oldest step in flight and returns its result, the same on every rank. If a rank had
  // failed by the end of its last micro-batch, all ranks throw AgreedError. The training has diverged if the loss is
  // not finite, or if gradients overflow and no smaller loss scale can help. From that step on no weight changes, even
  // in steps already queued. Any other step with an overflow changes only the loss scale.
  StepResult finish();
  int steps_in_flight() const { return static_cast<int>(in_flight_.size()); }
  StepResult run(Loader& loader, std::int64_t step, double learning_rate);  // start() and finish()

  // For devices that do not run ahead. `lock` is held between steps and outlives this. A step releases it from its
  // start to its update.
  void share_state(StateLock* lock) { state_ = lock; }

  const PlanUse& plan_use() const { return plan_use_; }  // of rank 0's kernels; zero on other ranks

  Model& model() { return model_; }
  const Model& model() const { return model_; }
  const WeightSync& sync() const { return sync_; }

 private:
  enum MicroBatchKind : std::uint8_t { first_micro_batch, middle_micro_batch, last_micro_batch, micro_batch_kinds };
  struct StepInFlight {
    std::int64_t step;
    double learning_rate;
    std::unique_ptr<Readback> record;
  };

  std::int64_t micro_batches_per_update() const;
  std::int64_t samples_per_update() const;
  void run_share(Loader& loader, std::int64_t step, std::span<const double> learning_rates);
  void run_taken(Loader& loader, std::int64_t step, std::span<const double> learning_rates);
  const Batch* next_batch(Loader& loader);
  void join_step();
  void draw_dropout(std::int64_t step, int micro_batch);
  void queue_micro_batch(const Batch* batch, int micro_batch);
  void update();
  void run_micro_batch(const Batch& batch, GradientSink& sink, Accumulate metrics);
  void warm_up_kernels(const std::vector<std::int64_t>& evaluation_batches,
                       const std::vector<SampleShape>& micro_batches);
  void attempt(const std::function<void()>& work);
  std::unique_ptr<Readback> spare_readback();

  const Session& session_;
  Device& device_;
  Model& model_;
  WeightSync& sync_;
  NormGroup* norm_group_;  // null: each micro-batch has its own statistics
  LoaderShare share_;
  float label_smoothing_;
  std::uint64_t seed_;  // of dropout
  std::array<std::unique_ptr<CapturedGraph>, micro_batch_kinds> micro_batch_graphs_;
  std::unique_ptr<CapturedGraph> update_graph_;  // used if the host reduces between backward and update
  std::deque<StepInFlight> in_flight_;           // oldest first
  std::vector<std::unique_ptr<Readback>> spare_;
  PlanUse plan_use_;
  StateLock* state_ = nullptr;  // null: the state is not shared
  ContainedFailure failure_;
};

}  // namespace lockstep
