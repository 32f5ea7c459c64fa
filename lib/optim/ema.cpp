#include "optim/ema.hpp"

#include <utility>

#include "device/flat/flat_passes.hpp"

namespace lockstep {

Ema::Ema(ParameterStore& store, const EmaRule& rule)
    : store_(store),
      rule_(rule),
      values_(store.device().make_persistent(store.gradient_count(), DType::f32)),
      running_(store.device().make_persistent(store.statistics_count(), DType::f32)) {}

void Ema::begin() {
  for (const auto& [from, into] : {std::pair(store_.values(), values_), std::pair(store_.running(), running_)}) {
    std::vector<float> values(static_cast<std::size_t>(from.shape().count()));
    store_.device().read(from, values);
    store_.device().write(values, into);
  }
}

void Ema::follow(const StepRecord& record) {
  FlatPasses& flat = store_.device().flat();
  flat.follow(store_.values(), rule_, values_, record);
  flat.follow(store_.running(), rule_, running_, record);
}

void Ema::exchange() {
  FlatPasses& flat = store_.device().flat();
  flat.exchange(store_.values(), values_);
  flat.exchange(store_.running(), running_);
  is_exchanged_ = !is_exchanged_;
}

std::vector<ParameterStore::Entry> Ema::entries() const {
  return is_exchanged_ ? store_.entries() : store_.entries_of(values_, running_);
}

std::vector<ParameterStore::Entry> Ema::entries_of_weights() const {
  return is_exchanged_ ? store_.entries_of(values_, running_) : store_.entries();
}

void Ema::assign(std::span<const ParameterStore::Entry> entries) {
  exchange();
  store_.assign(entries);
  exchange();
}

}  // namespace lockstep
