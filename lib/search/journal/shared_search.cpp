#include "search/journal/shared_search.hpp"

#include <fmt/format.h>

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "job/job_environment.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::size_t longest_group = 64;

void check_group(const std::string& group) {
  constexpr std::string_view known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  require(!group.empty() && group.size() <= longest_group && group.find_first_not_of(known) == std::string::npos,
          Failure::usage,
          "'{}' is not a name for processes that share a search (--join). Use at most {} letters, digits, - and _.",
          printable(group), longest_group);
}

// The folder of this process among those of its group.
std::string task_name(const std::string& group, const LockHolder& own) {
  const std::optional<SlurmJob>& job = this_job().slurm;
  if (job && job->array_task) return fmt::format("{}.{}", group, job->array_task->task);
  return fmt::format("{}.{}-{}", group, own.host, own.process);
}

[[noreturn]] void refuse(const fs::path& folder, const LockHolder& holder) {
  throw Error(Failure::usage,
              fmt::format("'{}' belongs to another search: {}. Wait until it ends, or choose another --output.",
                          folder.string(), describe_lock_holder(holder)));
}

// Returns if the processes with the locks of `places` are gone, or silent for three heartbeats. Removes their locks.
void require_gone(const std::vector<fs::path>& places, const fs::path& folder) {
  constexpr milliseconds pause(200);
  constexpr double limit_ms = 3.0 * FolderLock::default_heartbeat.count();
  std::map<fs::path, FolderHolder> silent;
  for (const fs::path& place : places) {
    const FolderHolder holder = holder_of(place);
    if (holder.kind == FolderHolder::Kind::here) refuse(folder, holder.process);
    if (holder.kind == FolderHolder::Kind::elsewhere) silent[place] = holder;
  }
  if (silent.empty()) return;
  log::info("waiting {:.0f} s to see whether {} still takes part in a search in '{}'", limit_ms / 1e3,
            describe_lock_holder(silent.begin()->second.process), folder.string());
  for (const Stopwatch watch; watch.milliseconds() < limit_ms;) {
    std::this_thread::sleep_for(pause);
    for (const auto& [place, holder] : silent) {
      const FolderHolder now = holder_of(place);
      if (now.kind != FolderHolder::Kind::nobody && now.lock != holder.lock) refuse(folder, now.process);
    }
  }
  std::error_code ignored;
  for (const auto& [place, holder] : silent) fs::remove(place / run_files::lock, ignored);
}

}  // namespace

void require_no_other_group(const fs::path& folder, const std::string& group) {
  std::vector<fs::path> others;
  std::error_code error;  // no folder: no process
  for (const fs::directory_entry& task : fs::directory_iterator(folder / "tasks", error)) {
    const std::string name = task.path().filename().string();
    if (group.empty() || !name.starts_with(group + ".")) others.push_back(task.path());
  }
  require_gone(others, folder);
}

SharedSearch::SharedSearch(fs::path folder, const std::string& group, milliseconds heartbeat)
    : folder_(std::move(folder)), heartbeat_(heartbeat) {
  check_group(group);
  const auto refuse_others = [&] {
    require_gone({folder_.path()}, folder_.path());
    require_no_other_group(folder_.path(), group);
  };
  refuse_others();
  task_ = std::make_unique<FolderLock>(folder_.path() / "tasks" / task_name(group, own_), "--output", own_);
  refuse_others();  // one may have come at the same time
}

std::unique_ptr<JournalLock> SharedSearch::lock_journal() const {
  return std::make_unique<JournalLock>(folder_.path(), own_);
}

bool SharedSearch::is_free(std::int64_t trial) {
  return !leases_.contains(trial) && watches_[trial].is_free(folder_.trial(trial), own_);
}

void SharedSearch::take(std::int64_t trial) {
  watches_.erase(trial);
  leases_[trial] = std::make_unique<TrialLease>(folder_.trial(trial), own_, heartbeat_);
}

bool SharedSearch::holds(std::int64_t trial) const {
  const auto lease = leases_.find(trial);
  return lease != leases_.end() && lease->second->is_held();
}

void SharedSearch::release(std::int64_t trial) {
  const bool is_held = holds(trial);
  const auto lease = leases_.extract(trial);
  if (is_held) lease.mapped()->release();
}

}  // namespace lockstep
