// The right of one process to run a trial of a search that several processes share.
//
// The file `lease` in the trial's folder has a line that identifies the holder, with the number of the lease, and a
// line with a counter, which the holder increments at each heartbeat. Each new lease has the next number. All processes
// change the file only while they hold the journal's lock (journal_lock.hpp), and replace it as a whole.
//
// A lease ends when its holder releases it. Otherwise another process may take the trial (LeaseWatch):
//
//   the holder is known to be gone      once no command of the trial runs on this node
//   running process of this node        never
//   anything else                       once neither the lease nor the lock of the trial's training has changed for
//                                       three heartbeats, by the taker's own clock
//
// The taker removes the training's lock (files/folder/folder_lock.hpp), so a training of the earlier holder that is
// only slow ends at its next change of the folder. The earlier holder itself finds another number in the lease, and
// neither records a result nor writes to the trial's log.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/io/descriptor.hpp"
#include "run/lock_holder.hpp"

namespace lockstep {

// What the file says. Reads an untrusted file and does not throw because of it.
struct LeaseState {
  std::int64_t number = 0;           // 0: the trial never had a lease
  std::optional<LockHolder> holder;  // nothing: released
  std::chrono::milliseconds heartbeat = std::chrono::milliseconds(0);
  std::string text;  // changes with each heartbeat
};
LeaseState read_lease(const std::filesystem::path& trial_folder);

class TrialLease {
 public:
  static constexpr std::chrono::milliseconds default_heartbeat = std::chrono::seconds(10);

  // Takes the lease with the next number, creates the folder if needed, and removes the lock of an earlier training
  // there. The caller holds the journal's lock, and LeaseWatch has just called the trial free. Throws as
  // write_file_atomically().
  TrialLease(const std::filesystem::path& trial_folder, const LockHolder& own, std::chrono::milliseconds heartbeat);
  TrialLease(const TrialLease&) = delete;
  TrialLease& operator=(const TrialLease&) = delete;
  ~TrialLease();  // ends the heartbeats without a release

  std::int64_t number() const { return number_; }
  bool is_held() const;  // false once another process has taken the trial
  // The caller holds the journal's lock, and the lease. Throws as write_file_atomically().
  void release();

 private:
  void write_heartbeats();

  std::filesystem::path file_;
  std::int64_t number_;
  std::string line_;
  std::chrono::milliseconds heartbeat_;
  Descriptor handle_;  // after another process has replaced the file, that of a file without a name
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_ending_ = false;
  std::thread thread_;
};

// Watches the lease of one trial.
class LeaseWatch {
 public:
  // Whether the process `own` may take the trial. Only repeated calls can find out that a holder is silent.
  bool is_free(const std::filesystem::path& trial_folder, const LockHolder& own);

 private:
  std::string seen_;
  Stopwatch since_;
};

}  // namespace lockstep
