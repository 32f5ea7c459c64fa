// The identity of a lock's holder, stored in the file `lock` of a folder in a form that other processes, also on other
// nodes, can check.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "job/job_environment.hpp"

namespace lockstep {

struct LockHolder {
  std::string job;                 // Slurm's job ID; empty without Slurm
  std::int64_t restarts = 0;       // of the Slurm job
  std::string host;                // the node's name
  std::int64_t process = 0;        // the process ID on that node
  std::string start;               // when it started, which detects a reused process ID
  std::int64_t pid_namespace = 0;  // the PID namespace: a container has its own
  std::string token;               // random; unique to this lock
};

// For a process of this node, with a new token.
LockHolder lock_holder_of(std::int64_t process, const JobEnvironment& job);
LockHolder this_lock_holder();

// Conversion to one line of JSON, and back from the first line of `text`. Nothing if the line is not valid.
std::string lock_holder_text(const LockHolder& holder);
std::optional<LockHolder> parse_lock_holder(std::string_view text);

// "job 17 on n2 (process 4711)"
std::string describe_lock_holder(const LockHolder& holder);

// What `own`, which wants the lock, can determine about `holder` without waiting.
enum class Liveness : std::uint8_t {
  gone,    // an earlier run of the same job, or an ended process of this node
  alive,   // a running process of this node
  unknown  // on another node, or stopped: only heartbeats can tell
};
Liveness liveness_of(const LockHolder& holder, const LockHolder& own);

// Who holds a folder, as its file `lock` shows it.
struct FolderHolder {
  enum class Kind : std::uint8_t {
    nobody,     // no lock, a damaged one, or that of a process known to have ended
    here,       // a running process on this node
    elsewhere,  // a process on another node, or a stopped one: only heartbeats in the lock show whether it is alive
  };
  Kind kind = Kind::nobody;
  LockHolder process;  // unless nobody holds it
  std::string lock;    // text of the lock file, which changes with each heartbeat; empty if nobody holds it
};
FolderHolder holder_of(const std::filesystem::path& folder);

}  // namespace lockstep
