// Exponential moving average (EMA) of weights and running statistics over steps. It often generalizes better than the
// last weights. The averages have their own memory, and are swapped with the weights for testing and writing.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "device/flat/flat_passes.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

class Ema {
 public:
  // `store` is allocated and outlives this. With `parts`, only these parts of the weights have an EMA here, one after
  // another in values().
  Ema(ParameterStore& store, const EmaRule& rule, std::optional<std::vector<FlatPart>> parts = {});

  // Initializes the EMA with the current weights. Blocking.
  void begin();
  // Updates the EMA, and the weights if the rule leads. Call after a step has updated weights and statistics.
  // Stream-ordered.
  void follow(const StepRecord& record);
  // Swaps the weights and statistics with the EMA: until the next call the model holds the EMA. Stream-ordered.
  void exchange();

  const Tensor& values() const { return values_; }    // of the weights
  const Tensor& running() const { return running_; }  // of the running statistics

  // Entries of the EMA and of the weights, in whichever memory they currently are; nothing is swapped. See
  // ParameterStore for the format. Only of an EMA of all weights; likewise assign().
  void visit(const ParameterStore::TakeEntry& take) const;
  void visit_weights(const ParameterStore::TakeEntry& take) const;
  void assign(std::span<const ParameterStore::Entry> entries);

 private:
  template <typename Pass>
  void for_each_part(const Pass& pass) const;  // pass(weights, ema)

  ParameterStore& store_;
  EmaRule rule_;
  std::vector<FlatPart> parts_;
  Tensor values_;
  Tensor running_;
  bool is_exchanged_ = false;
};

}  // namespace lockstep
