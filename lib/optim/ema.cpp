#include "optim/ema.hpp"

#include <utility>

namespace lockstep {
namespace {

std::int64_t elements_of(const std::vector<FlatPart>& parts) {
  std::int64_t elements = 0;
  for (const FlatPart& part : parts) elements += part.count;
  return elements;
}

void copy(Device& device, const Tensor& from, const Tensor& into) {
  std::vector<float> values(static_cast<std::size_t>(from.shape().count()));
  device.read(from, values);
  device.write(values, into);
}

}  // namespace

Ema::Ema(ParameterStore& store, const EmaRule& rule, std::optional<std::vector<FlatPart>> parts)
    : store_(store),
      rule_(rule),
      parts_(std::move(parts).value_or(std::vector<FlatPart>{{0, store.gradient_count()}})),
      values_(store.device().make_persistent(elements_of(parts_), DType::f32)),
      running_(store.device().make_persistent(store.statistics_count(), DType::f32)) {}

template <typename Pass>
void Ema::for_each_part(const Pass& pass) const {
  std::int64_t first = 0;
  for (const FlatPart& part : parts_) {
    pass(store_.values().slice(part.first, part.count), values_.slice(first, part.count));
    first += part.count;
  }
  pass(store_.running(), running_);
}

void Ema::begin() {
  for_each_part([this](const Tensor& weights, const Tensor& ema) { copy(store_.device(), weights, ema); });
}

void Ema::follow(const StepRecord& record) {
  for_each_part(
      [&](const Tensor& weights, const Tensor& ema) { store_.device().flat().follow(weights, rule_, ema, record); });
}

void Ema::exchange() {
  for_each_part([this](const Tensor& weights, const Tensor& ema) { store_.device().flat().exchange(weights, ema); });
  is_exchanged_ = !is_exchanged_;
}

void Ema::visit(const ParameterStore::TakeEntry& take) const {
  is_exchanged_ ? store_.visit(store_.values(), store_.running(), take) : store_.visit(values_, running_, take);
}

void Ema::visit_weights(const ParameterStore::TakeEntry& take) const {
  is_exchanged_ ? store_.visit(values_, running_, take) : store_.visit(store_.values(), store_.running(), take);
}

void Ema::assign(std::span<const ParameterStore::Entry> entries) {
  exchange();
  store_.assign(entries);
  exchange();
}

}  // namespace lockstep
