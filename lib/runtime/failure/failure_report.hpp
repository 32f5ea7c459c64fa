// The report of why a job ended, written by the rank that knows it first. Launchers change exit codes, and a killed
// rank prints nothing, so the report is written to two files:
//
//   the attempt's exit report, named by the variable LOCKSTEP_VERDICT: every program writes there why it ended, if its
//     exit code is not 0. Job scripts read it before they look at the exit code.
//   failure.json in the output folder, for users: written only by the job that holds the folder's lock.
//
// Both have the fields:
//
//   code        exit code of base/error.hpp; 1 if a signal ended the rank
//   signal      number of the signal, or null
//   rank, host  the rank that failed
//   bad_hosts   nodes that the next attempt should avoid; only if they are known
//   error_line  a line that the program of a role printed and that shows why it failed; only of run_roles
//   step        index of the last step that the writing rank began, from 0, as in the sentence's "at step N"; "after
//               step N" counts steps done. -1 before the first
//   sentence    what happened, for people
//   time        seconds since 1970
//
// The state is global, because a signal handler cannot reach anything else.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::failure_report {

// Sets the rank and host of this process. Call before any thread starts.
void set_rank(int rank, const std::string& host);

// Sets the file of the exit report. Empty: none.
void set_exit_report_file(const std::filesystem::path& file);
// Call on one rank, before the others can fail. Removes an earlier attempt's report, and warns if no report can be
// written. Throws Error(usage) if the name belongs to another kind of file.
void begin_attempt();

// Proof that this job owns a folder: the folder's file `lock` contains the token.
struct FolderLease {
  std::string token;                 // at most 100 bytes; empty if the folder is not locked
  std::shared_ptr<const void> lock;  // on the rank that holds the lock: kept until another folder is set, so that no
                                     // report is written after the release
};
// Sets the folder of failure.json; empty: none. Nothing is written there once its lock no longer contains the token. A
// removed folder is created again if its parent exists.
void set_folder(const std::filesystem::path& folder, FolderLease lease = {});
// From now on summary.json in the folder belongs to this job: a failure marks it as failed (run_state.hpp).
void own_summary() noexcept;
// Removes the failure.json of an earlier run.
void clear();

void set_step(std::int64_t step) noexcept;
// Disables write() on this rank: it returns false from now on. Used when all ranks of a node fail alike, and have no
// shared memory in which to agree on one writer.
void leave_to_others() noexcept;

struct Reason {
  int code = 1;
  int signal = 0;  // 0 if there is none
  std::string_view sentence;
  std::span<const std::string> bad_hosts = {};
  std::string_view error_line = {};
};

// Writes the report. write() reports this rank, write_of() reports `rank` on `host`, on behalf of which a survivor
// writes. Only the first report counts: a later call changes nothing, and returns once the first is written.
// Async-signal-safe and thread-safe; keeps errno. Returns whether the caller should print the sentence. It should not
// if another report came first, because the job then ends with that report's sentence.
bool write(const Reason& reason) noexcept;
bool write_of(int rank, std::string_view host, const Reason& reason) noexcept;

// Reports in the folder's failure.json only, for an orderly end of the folder's owner in a process that continues. The
// first report stays.
void write_in_folder(const Reason& reason) noexcept;

// The exit code in the existing report, with the attempt's exit report first. Nothing if none can be read. Not
// async-signal-safe.
std::optional<int> reported_code();

// State that the ranks of a node share, so that only one of them reports a failure. See runtime/watch/watcher.
struct Shared {
  static constexpr int unreported = 0;
  static constexpr int reporting = 1;
  static constexpr int reported = 2;
  std::atomic<int>* report_state = nullptr;  // state of the node's first report
  std::atomic<int>* code = nullptr;          // set to this rank's exit code
};
void share(const Shared& shared);

}  // namespace lockstep::failure_report
