#include "train/opening/training_scope.hpp"

#include <functional>
#include <string>

#include "base/log.hpp"
#include "runtime/failure/failure_report.hpp"

namespace lockstep {
namespace {

// Collective.
Team team_of(const Communicator& world) {
  return {static_cast<int>(world.max(world.rank() == 0 ? log::job_rank() : 0)), world.size()};
}

}  // namespace

TrainingScope::TrainingScope(const Session& session, std::optional<double> time_limit_seconds)
    : log_scope(session.world.rank(), session.label),
      team(team_of(session.world)),
      stops(session.world, session.signals, time_limit_seconds) {}

std::shared_ptr<FolderLock> take_output_folder(const Communicator& world, const StopAgreement& stops,
                                               const std::filesystem::path& folder) {
  failure_report::set_step(-1);
  std::shared_ptr<FolderLock> lock;
  if (!folder.empty()) {
    stops.wait_for_rank_0([&](const std::function<void()>& look) {
      lock = std::make_shared<FolderLock>(folder, "--output", this_lock_holder(), FolderLock::default_heartbeat, look);
      failure_report::set_folder(folder, {lock->token(), lock});
      failure_report::clear();
    });
    const std::string token = world.broadcast(lock == nullptr ? "" : lock->token(), 0);
    if (lock == nullptr) failure_report::set_folder(folder, {token, nullptr});
  }
  stops.end_start_if_asked();  // not earlier: this attempt's report replaces that of an earlier one
  return lock;
}

}  // namespace lockstep
