// What ended a job, in the words of the rank that knows first. Launchers change exit codes, and a rank that is killed
// says nothing; so a report is written to two files:
//
//   the attempt's exit report, which the variable LOCKSTEP_VERDICT names: every start of every program tells here why
//   it
//     ended, if not with 0. Job scripts read it before they look at a code.
//   failure.json in the output folder, for people who look there: only by the job that holds the folder's lock.
//
// Field by field:
//
//   code      exit code of base/error.hpp; 1 where a signal ended the rank
//   signal    number of the signal, or null
//   rank, host  where
//   bad_hosts  nodes that another attempt had better avoid; only where they are known
//   step      the last one begun, -1 before the first; of the rank that writes
//   sentence  what happened, for people
//   time      seconds since 1970
//
// One state for the process, because a signal handler has no other way to it.
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

// Whose failures these are. Call before any thread is started.
void set_rank(int rank, const std::string& host);

// Names the attempt's file; empty: none.
void set_exit_report_file(const std::filesystem::path& file);
// One rank, before the others can fail: removes what an earlier attempt left under that name, and warns if no report
// can be written there. Throws Error(usage) if something else is there.
void begin_attempt();

// What makes a folder this job's: its file `lock` holds the token.
struct FolderLease {
  std::string token;                 // at most 100 bytes; empty: the folder is not locked
  std::shared_ptr<const void> lock;  // of the rank that holds it: kept until another folder is set, so that no report
                                     // comes after it is given back
};
// The folder of failure.json; empty: none. Nothing is written there once the token is no longer in its lock. A folder
// that was removed is made again, if its parent exists.
void set_folder(const std::filesystem::path& folder, FolderLease lease = {});
// From now on summary.json in the folder is this job's: a failure marks it as failed (run_state.hpp).
void own_summary() noexcept;
// Removes the failure.json of an earlier run.
void clear();

void set_step(std::int64_t step) noexcept;
// Where all ranks of a node fail alike and share no memory to see it in: this rank tells nothing from now on, and
// write() returns false.
void leave_to_others() noexcept;

struct Cause {
  int code = 1;
  int signal = 0;  // 0: none
  std::string_view sentence;
  std::span<const std::string> bad_hosts = {};
};

// What happened to this rank, or to `rank` on `host`, of which a survivor writes. The first report stands: a later one
// changes nothing, and returns when the first is written. Safe in signal handlers and from any thread; keeps errno.
// Returns whether to print the sentence too: not when another report stands, for then the job is ending with that one's
// words.
bool write(const Cause& cause) noexcept;
bool write_of(int rank, std::string_view host, const Cause& cause) noexcept;

// How what holds the folder ended in good order, while the process goes on: in the folder's failure.json alone. The
// first report stands.
void write_in_folder(const Cause& cause) noexcept;

// The exit code in the report that stands, the attempt's first; nothing if none can be read. Not for signal handlers.
std::optional<int> standing_code();

// What the ranks of a node know of each other's failures, in memory they share: see runtime/watch/watcher.
struct Shared {
  static constexpr int nobody_tells = 0;
  static constexpr int one_tells = 1;
  static constexpr int is_told = 2;
  std::atomic<int>* told = nullptr;  // the first report of the node
  std::atomic<int>* code = nullptr;  // becomes this rank's exit code
};
void share(const Shared& shared);

}  // namespace lockstep::failure_report
