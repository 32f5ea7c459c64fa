// A search that several processes share: tasks of a job array, which start and end as Slurm likes.
//
//   FOLDER/search.lock          the journal's lock, held for one decision (journal_lock.hpp)
//   FOLDER/tasks/GROUP.3/lock   a process of the search, with heartbeats (files/folder/folder_lock.hpp)
//   FOLDER/trial-3/lease        which process runs trial 3 (trial_lease.hpp)
//
// Processes with the same group share a search. The folder belongs to one group, or to one process that works alone, as
// long as a process of it lives.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "files/folder/folder_lock.hpp"
#include "run/lock_holder.hpp"
#include "search/journal/journal_lock.hpp"
#include "search/journal/search_folder.hpp"
#include "search/journal/trial_lease.hpp"

namespace lockstep {

// Throws Error(usage) if a living process of another group than `group` (empty: of any) has joined the search in
// `folder`. May wait for three heartbeats.
void require_no_other_group(const std::filesystem::path& folder, const std::string& group);

class SharedSearch {
 public:
  // Joins the search in `folder`, which is created if needed. `group` consists of letters, digits, '-' and '_'. May
  // wait for three heartbeats. Throws Error(usage) for another group, or if another group or a process that works alone
  // has the folder. Throws as system_failure() if the folder cannot be written.
  SharedSearch(std::filesystem::path folder, const std::string& group,
               std::chrono::milliseconds heartbeat = TrialLease::default_heartbeat);

  // Waits for the journal's lock. The caller gives it back within a few seconds.
  std::unique_ptr<JournalLock> lock_journal() const;

  // Whether nobody runs the trial, or its holder has been silent. Call it repeatedly for trials of others.
  bool is_free(std::int64_t trial);
  // The caller holds the journal's lock, and is_free(trial) has just been true.
  void take(std::int64_t trial);
  std::int64_t lease_of(std::int64_t trial) const { return leases_.at(trial)->number(); }  // between take and release
  // Whether this process has the trial's lease, as it got it from take().
  bool holds(std::int64_t trial) const;
  // The caller holds the journal's lock. Nothing if this process does not have the lease any more.
  void release(std::int64_t trial);

 private:
  SearchFolder folder_;
  LockHolder own_ = this_lock_holder();
  std::chrono::milliseconds heartbeat_;
  std::unique_ptr<FolderLock> task_;
  std::map<std::int64_t, std::unique_ptr<TrialLease>> leases_;
  std::map<std::int64_t, LeaseWatch> watches_;
};

}  // namespace lockstep
