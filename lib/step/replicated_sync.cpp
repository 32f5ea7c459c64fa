#include "step/replicated_sync.hpp"

namespace lockstep {

void ReplicatedSync::visit(const std::string& group, const ParameterStore::TakeEntry& take) const {
  if (group == ema_group) {
    ema_->visit(take);
  } else if (group == weights_group) {
    ema_ ? ema_->visit_weights(take) : store_.visit(store_.values(), store_.running(), take);
  } else {
    store_.visit(optimizer_array(group), take);
  }
}

void ReplicatedSync::assign(const TrainingTensors& tensors) {
  store_.assign(tensors.weights);
  assign_state(store_, *optimizer_, tensors.optimizer);
  if (ema_) ema_->assign(tensors.ema);
}

}  // namespace lockstep
