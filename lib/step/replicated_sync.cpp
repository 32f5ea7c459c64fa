#include "step/replicated_sync.hpp"

namespace lockstep {

void ReplicatedSync::visit(const std::string& group, const ParameterStore::TakeEntry& take) const {
  if (!visit_common(group, take)) store_.visit(optimizer_array(group), take);
}

void ReplicatedSync::assign(const TrainingTensors& tensors) {
  require_same_groups(tensors);
  store_.assign(tensors.weights);
  assign_state(store_, *optimizer_, tensors.optimizer);
  assign_state_of_sums(tensors);
  if (ema_) ema_->assign(tensors.ema);
}

}  // namespace lockstep
