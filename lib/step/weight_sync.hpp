// The boundary between the gradients of a step and the weights of the next one.
//
// One object owns everything between "this micro-batch's gradient of this parameter is complete" and "the weights that
// this rank reads next are current, or the step was skipped, or the training has diverged": the exchange of gradients,
// the verdict on the step, the update, running statistics and the EMA. Callers rely on this, whatever the
// implementation:
//
//   - After share_weights() (stream-ordered) weights and running statistics are equal on all ranks.
//   - A rank may change its own weights within a step (`updates_own_weights`), but a step ends with common ones.
//   - Metrics, overflow counts, stop requests and marks of failed ranks travel with the gradients. After update()
//     record() has their sums over all ranks and the verdict, equal on all ranks. Only an `applied` step changes a
//     weight, a statistic or the EMA.
//   - The whole state leaves and enters by visit() and assign(), in the same form for every implementation. If
//     is_replicated(), every rank has all of it, so that rank 0 can write checkpoints alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/session.hpp"
#include "device/flat/step_record.hpp"
#include "nn/layer.hpp"
#include "optim/optimizer.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

// Host time that the exchange of gradients has cost this rank so far.
struct SyncCost {
  double within_backward_ms = 0;  // spent during backward, if the host does the work
  double after_backward_ms = 0;   // spent waiting in sum_gradients(): not overlapped
};

// All tensors of a training, as a checkpoint keeps them; see ParameterStore for the form of entries.
struct TrainingTensors {
  std::vector<ParameterStore::Entry> weights;  // with the running statistics
  OptimizerState optimizer;
  std::vector<ParameterStore::Entry> ema;  // as `weights`; empty if no EMA is kept
};

// Groups of tensors that are not the optimizer's.
inline constexpr const char* weights_group = "weights";
inline constexpr const char* ema_group = "ema";

class RemoteServer;
class RemoteTrainers;

struct WeightSyncOptions {
  AllReduceOptions reduce;
  OptimizerOptions optimizer;
  std::optional<EmaRule> ema;              // unset: no EMA is kept
  bool shard_optimizer = false;            // see sharded_sync.hpp; so with servers
  std::optional<LocalUpdates> local = {};  // see local_sync.hpp; unset: no rank has weights of its own
  std::optional<AsyncUpdates> async = {};  // see async_sync.hpp; unset: servers update once per step
  // If trainers are programs of their own (remote_rounds.hpp): set on the server, or on a trainer. Without `async`,
  // sums are reproducible.
  RemoteTrainers* remote_trainers = nullptr;
  int expected_trainers = 0;  // with `async`
  RemoteServer* remote_server = nullptr;
};

// How old the gradients of asynchronous updates were, in updates that others made in the meantime. Of all steps since
// the training started or was resumed.
struct Staleness {
  std::vector<std::int64_t> applied;  // by age
  std::vector<std::int64_t> pushed;   // by trainer
  std::vector<std::int64_t> dropped;  // by trainer: too old to be applied
  bool of_programs = false;           // trainers are no ranks, but programs of their own, by RemoteTrainers' numbers
};

// Who computed what, where ranks share micro-batches by speed. Of all steps since the training started or was resumed.
struct SharedWork {
  std::vector<std::int64_t> micro_batches;  // by rank
  double busy_seconds = 0;                  // with micro-batches, over all ranks
  double step_seconds = 0;                  // until the last rank was done
  std::int64_t steps = 0;
};

// A micro-batch of a step, and the number of the update whose learning rate it has.
struct TakenMicroBatch {
  int micro_batch;
  int update;
};

class WeightSync {
 public:
  virtual ~WeightSync() = default;
  WeightSync(const WeightSync&) = delete;
  WeightSync& operator=(const WeightSync&) = delete;

  // Whether each micro-batch is an update of this rank's own weights. Its loss is then divided by its own samples, not
  // by the global batch, and its batch statistics count once.
  virtual bool updates_own_weights() const { return false; }
  // Whether a rank's micro-batches are known only within a step. Then take_micro_batch() is called until it returns
  // nothing, and end_micro_batch() may make others available.
  virtual bool hands_out_micro_batches() const { return false; }
  virtual std::optional<TakenMicroBatch> take_micro_batch() { return std::nullopt; }

  // Before all else of a step, which is counted from 0.
  virtual void begin_step(std::int64_t /*step*/) {}
  // One step calls these in this order, collectively and stream-ordered. begin_micro_batch() precedes the forward of
  // each micro-batch, whose backward reports gradients to the returned sink, and end_micro_batch() follows it.
  virtual void set_learning_rate(double rate);
  virtual GradientSink& begin_micro_batch(int micro_batch, int micro_batches) = 0;
  // Whether the micro-batch's loss and counts overwrite the metric slots or are added.
  virtual Accumulate accumulate_metrics() const = 0;
  // For a rank that has failed in the micro-batch: takes part in its sums, and marks the step. No rank applies it.
  virtual void give_up_micro_batch() = 0;
  // For a rank without samples, in the place of a micro-batch's forward and backward: takes part with zeros.
  virtual void contribute_nothing() = 0;
  virtual void end_micro_batch() {}
  virtual void sum_gradients() = 0;
  virtual void update() = 0;
  virtual void share_weights() {}

  // Whether the host exchanges the values of a device that has its own queue. Then all sums start in sum_gradients().
  // Neither it nor share_weights() can be captured in a graph then, but everything between them.
  virtual bool needs_host() const = 0;
  // Throws Error if an operation in flight has failed. In a captured graph that can happen at any time.
  virtual void check() = 0;

  // Between two steps: asks all ranks, with the next step's sums, to stop.
  void request_stop();
  // From the next step on, scales the loss and skips steps in which a gradient overflows on any rank. Half precision
  // does so from the start. Equal on all ranks. Blocking.
  void scale_loss(const LossScale& state);
  std::optional<LossScale> loss_scale() const;  // std::nullopt without loss scaling. Blocking
  // For a resumed training: the number of steps applied before its first step here, without skipped ones.
  void set_applied_steps(std::int64_t steps) { record_.set_applied_steps(steps); }
  // If ranks update their own weights: how many updates each rank's optimizer state has seen since it was zero, at most
  // 2^24, for a resumed training. One number if it is the same for all ranks, otherwise one for each rank; empty if
  // ranks have no weights of their own. Blocking.
  virtual std::vector<std::int64_t> own_updates() const { return {}; }
  // Throws Error(bad_data) if there are numbers for other ranks than the state has.
  virtual void set_own_updates(const std::vector<std::int64_t>& /*updates*/) {}
  const StepRecord& record() const { return record_; }
  virtual const Staleness* staleness() const { return nullptr; }     // null unless updates are asynchronous
  virtual const SharedWork* shared_work() const { return nullptr; }  // null unless ranks share work by speed

  // The state, between two steps. Blocking. Collective unless is_replicated().
  virtual bool is_replicated() const = 0;
  virtual void begin() = 0;  // the store has the initial weights
  // The groups of the optimizer and of compressed sums in ascending order, the EMA's if one is kept, then the weights.
  // visit() passes the tensors of one group to `take`, sorted by name; see ParameterStore. They are the same on every
  // rank.
  virtual std::vector<std::string> groups() const = 0;
  virtual void visit(const std::string& group, const ParameterStore::TakeEntry& take) const = 0;
  // Of all groups, at least.
  std::int64_t tensor_count() const;
  std::int64_t state_bytes() const;  // of their values
  // How often visit() passes the store's tensors, over all groups.
  virtual std::int64_t tensor_sets() const { return std::ssize(groups()); }
  // Throws Error(usage) if the state belongs to another optimizer, and as ParameterStore::assign().
  virtual void assign(const TrainingTensors& tensors) = 0;
  virtual bool keeps_ema() const = 0;
  // Swaps the weights and statistics with the EMA: until the next call the model holds the EMA. Stream-ordered.
  virtual void exchange_ema() = 0;

  virtual std::string description() const = 0;   // "shared memory (2 ranks)"
  virtual std::size_t bucket_count() const = 0;  // number of slices in which a step's gradients are reduced
  virtual const SyncCost& cost() const = 0;

 protected:
  explicit WeightSync(ParameterStore& store);
  virtual void count_overflows() = 0;  // from the next step on, in the overflow slot

  ParameterStore& store_;
  StepRecord record_;

 private:
  bool scales_loss_ = false;
};

// All tensors, or those to use: the EMA if one is kept, else the weights. As visit().
TrainingTensors tensors_of(const WeightSync& sync);
std::vector<ParameterStore::Entry> weights_to_use(const WeightSync& sync);

// Collective. Allocates `store`, whose layers are built, and which outlives the result. `micro_batches`: per step, over
// all ranks. Throws as Backend::make_reducer().
std::unique_ptr<WeightSync> make_weight_sync(const Session& session, ParameterStore& store,
                                             const WeightSyncOptions& options, int micro_batches);

}  // namespace lockstep
