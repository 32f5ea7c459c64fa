// The exponential mean of weights and running statistics over steps (EMA), which often generalises better than the last
// weights. It lies beside them, and they change places where it is to be tested or written.
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

  // It becomes the weights as they are. Blocking.
  void begin();
  // After the weights and statistics of a step have moved. Stream-ordered.
  void follow(const StepRecord& record);
  // Weights and mean change places, statistics too: until the next call the model is the mean. Stream-ordered.
  void exchange();

  // Those of the mean and of the weights, wherever they lie now; nothing changes places. As those of the store: see
  // there.
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
