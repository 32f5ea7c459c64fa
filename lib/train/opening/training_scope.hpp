// The place of a run in its job, and its output folder.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "backend/session.hpp"
#include "base/clock.hpp"
#include "base/log_scope.hpp"
#include "files/folder/folder_lock.hpp"
#include "runtime/stop/stop_agreement.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

// The place of a training in its job, while it exists: which rank logs, whom it waits for, when it must stop.
struct TrainingScope {
  // Collective.
  TrainingScope(const Session& session, std::optional<double> time_limit_seconds);

  Stopwatch since_start;
  log::LogScope log_scope;
  rank_status::TeamScope team;
  StopAgreement stops;
};

// Collective. Returns the lock of `folder` on rank 0, and null on other ranks, or if `folder` is empty. From here on
// every rank reports failures in this folder, which belongs to this training. Throws AgreedError: usage if the folder
// belongs to another job, stopped_early if `stops` ends the wait.
std::shared_ptr<FolderLock> take_output_folder(const Communicator& world, const StopAgreement& stops,
                                               const std::filesystem::path& folder);

}  // namespace lockstep
