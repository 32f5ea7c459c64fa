// Audit: checks that all ranks still have the same weights. A deviating rank would train its own model unnoticed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "nn/parameter_store.hpp"
#include "train/loop/observer.hpp"

namespace lockstep {

// A rank's hash of its weights and running statistics.
struct WeightsOnRank {
  std::string host;
  std::string hash;
};

// Collective. Waits for the device. `step` (counted from 0) is the last one done. If weights differ, throws
// AgreedError(out_of_step), naming the ranks that deviate from the majority.
void audit_weights(const Communicator& world, const ParameterStore& store, std::int64_t step);

// Audits after every `every` steps; 0: never.
class Audit final : public TrainingObserver {
 public:
  // Both arguments outlive this.
  Audit(const Communicator& world, const ParameterStore& store, std::int64_t every)
      : world_(world), store_(store), every_(every) {}

  bool is_collective() const override { return true; }
  bool pauses_after(std::int64_t steps) const override { return every_ != 0 && steps % every_ == 0; }
  // Collective.
  void on_pause(const TrainingView& training) override { audit_weights(world_, store_, training.progress.step - 1); }

 private:
  const Communicator& world_;
  const ParameterStore& store_;
  std::int64_t every_;
};

// The message for deviating weights, by rank; empty if all are equal. If there is no majority, it names all ranks.
std::string deviation_message(std::span<const WeightsOnRank> ranks, std::int64_t step);

}  // namespace lockstep
