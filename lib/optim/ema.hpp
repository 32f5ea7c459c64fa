// Exponential moving average (EMA) of weights and running statistics over steps. It often generalizes better than the
// last weights. The averages have their own memory, and are swapped with the weights for testing and writing.
#pragma once

#include <span>
#include <vector>

#include "device/flat/step_record.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

class Ema {
 public:
  // `store` is allocated and outlives this.
  Ema(ParameterStore& store, const EmaRule& rule);

  // Initializes the EMA with the current weights. Blocking.
  void begin();
  // Updates the EMA. Call after a step has updated weights and statistics. Stream-ordered.
  void follow(const StepRecord& record);
  // Swaps the weights and statistics with the EMA: until the next call the model holds the EMA. Stream-ordered.
  void exchange();

  // Entries of the EMA and of the weights, in whichever memory they currently are; nothing is swapped. See
  // ParameterStore for the format.
  std::vector<ParameterStore::Entry> entries() const;
  std::vector<ParameterStore::Entry> entries_of_weights() const;
  void assign(std::span<const ParameterStore::Entry> entries);

 private:
  ParameterStore& store_;
  EmaRule rule_;
  Tensor values_;
  Tensor running_;
  bool is_exchanged_ = false;
};

}  // namespace lockstep
