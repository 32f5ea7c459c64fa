#include "step/kernel_choice.hpp"

#include <string>

#include "runtime/watch/rank_status.hpp"

namespace lockstep {

PlanUse choose_kernels(const Session& session, const std::function<void()>& warm_up) {
  Device& device = session.device();
  if (!device.ops().measures_kernels()) return {};
  constexpr int measuring_rank = 0;
  PlanUse use;
  rank_status::enter(Phase::measuring);
  if (session.world.rank() == measuring_rank) {
    const PlanFile file(session.plan_folder, device.plan_conditions());
    const std::string known = file.read();
    device.ops().suggest_plan(known);
    warm_up();
    device.synchronize();
    const std::string used = device.ops().export_plan();
    use = plan_use(known, used);
    file.keep(used);
  }
  rank_status::enter(Phase::meeting);
  device.ops().import_plan(session.world.broadcast(device.ops().export_plan(), measuring_rank));
  return use;
}

}  // namespace lockstep
