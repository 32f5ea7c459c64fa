#include "step/replicated_sync.hpp"

namespace lockstep {

void ReplicatedSync::visit(const std::string& group, const ParameterStore::TakeEntry& take) const {
  if (group == ema_group || group == weights_group) return visit_common(group, take);
  store_.visit(optimizer_array(group), take);
}

void ReplicatedSync::assign(const TrainingTensors& tensors) {
  store_.assign(tensors.weights);
  assign_state(store_, *optimizer_, tensors.optimizer);
  if (ema_) ema_->assign(tensors.ema);
}

}  // namespace lockstep
