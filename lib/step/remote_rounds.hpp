// The steps of a server whose trainers are programs of their own, which come and go (comm/remote_trainers.hpp),
// whatever it does with a gradient. The server is the training: its only rank has the weights, the optimizer, the list
// of micro-batches, tests and checkpoints. A trainer computes gradients only (remote_trainer_sync.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "comm/remote_trainers.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

class RemoteRounds {
 public:
  // What the server does with a push, whose gradients and batch statistics are in the store. Nothing: the step ends at
  // once.
  using Take = std::function<std::optional<PushAnswer>(const Push& push)>;

  // `trainers` and `store` outlive this. Values are in host memory. `micro_batches`: of a step.
  RemoteRounds(RemoteTrainers& trainers, const ParameterStore& store, int micro_batches);

  int micro_batches() const { return micro_batches_; }
  void begin_step(std::int64_t step) { step_ = step; }
  // Serves trainers until each micro-batch of the step was taken once.
  void serve(const Take& take);
  // Of the last push.
  float metric(ParameterStore::MetricSlot slot) const;
  // For a push with values that end the training. Names the trainer in the log, once in a step: its node may be broken.
  void warn_of(const Push& push);

 private:
  RemoteTrainers& trainers_;
  const ParameterStore& store_;
  int micro_batches_;
  std::int64_t step_ = 0;
  Tensor metrics_;
  bool has_warned_ = false;  // in this step
};

}  // namespace lockstep
