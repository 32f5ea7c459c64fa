#include "step/remote_rounds.hpp"

#include <utility>

#include "base/log.hpp"
#include "device/elements.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

RemoteRounds::RemoteRounds(RemoteTrainers& trainers, const ParameterStore& store, int micro_batches)
    : trainers_(trainers),
      store_(store),
      micro_batches_(micro_batches),
      metrics_(store.device().make_persistent(ParameterStore::metric_slot_count, DType::f32)) {
  trainers_.set_pushed_values(store.gradient_count() + store.statistics_count() + ParameterStore::metric_slot_count);
}

void RemoteRounds::serve(const Take& take) {
  has_warned_ = false;
  trainers_.begin_round(step_, micro_batches_, store_.values());
  rank_status::enter(Phase::reducing);
  while (const std::optional<Push> push = trainers_.next()) {
    rank_status::enter(Phase::updating);
    trainers_.receive(*push, {store_.gradients(), store_.batch_statistics(), metrics_});
    const std::optional<PushAnswer> answer = take(*push);
    answer ? trainers_.answer(*push, *answer, store_.values()) : trainers_.cancel_round();
    rank_status::enter(Phase::reducing);
  }
}

void RemoteRounds::warn_of(const Push& push) {
  if (std::exchange(has_warned_, true)) return;
  log::warning(
      "step {}: {} pushed values that are not finite or too large. If it is always the same one, check its node.",
      step_, trainers_.name_of(push.trainer));
}

float RemoteRounds::metric(ParameterStore::MetricSlot slot) const {
  return elements(metrics_)[static_cast<std::size_t>(slot)];
}

}  // namespace lockstep
