// failure.json: what ended a job, in the words of the rank that knows first.
//
// Launchers change exit codes, and a rank that is killed says nothing; job scripts read this file before they look at a
// code. Field by field:
//
//   code      exit code of base/error.hpp; 1 where a signal ended the rank
//   signal    number of the signal, or null
//   rank, host  where
//   step      the last one begun, -1 before the first; of the rank that writes
//   sentence  what happened, for people
//   time      seconds since 1970
//
// One state for the process, because a signal handler has no other way to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::failure_report {

// Whose failures these are. Call before any thread is started.
void set_rank(int rank, const std::string& host);
// Where the file goes; empty: nowhere. The folder is made when it is needed, if its parent exists.
void set_folder(const std::filesystem::path& folder);
// Removes the report of an earlier run.
void clear();
void set_step(std::int64_t step) noexcept;

struct Cause {
  int code = 1;
  int signal = 0;  // 0: none
  std::string_view sentence;
};

// What happened to this rank, or to `rank` on `host`, of which a survivor writes. The first report stands: a later one
// changes nothing, and returns when the first is written. Safe in signal handlers and from any thread; keeps errno.
// Returns whether to print the sentence too: not when another report stands, for then the job is ending with that one's
// words.
bool write(const Cause& cause) noexcept;
bool write_of(int rank, std::string_view host, const Cause& cause) noexcept;

// The exit code in the report that stands, if there is one that can be read. Not for signal handlers.
std::optional<int> standing_code();

// What the ranks of a node know of each other's failures, in memory they share: see runtime/watcher.
struct Shared {
  static constexpr int nobody_tells = 0;
  static constexpr int one_tells = 1;
  static constexpr int is_told = 2;
  std::atomic<int>* told = nullptr;  // the first report of the node
  std::atomic<int>* code = nullptr;  // becomes this rank's exit code
};
void share(const Shared& shared);

}  // namespace lockstep::failure_report
