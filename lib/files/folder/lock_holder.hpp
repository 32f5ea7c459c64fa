// Who holds a lock on disk, in words that another process, perhaps on another node, can judge.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "job/job_environment.hpp"

namespace lockstep {

struct LockHolder {
  std::string job;              // Slurm's number; empty without Slurm
  std::int64_t restarts = 0;    // of that job
  std::string host;             // the node's name
  std::int64_t process = 0;     // its number on that node
  std::string start;            // when it started, so that a number used again is not mistaken for it
  std::int64_t name_space = 0;  // of process numbers: a container has its own
  std::string token;            // random: this very lock
};

// A process of this node, with a token of its own.
LockHolder lock_holder_of(std::int64_t process, const JobEnvironment& job);
LockHolder this_lock_holder();

// One line of JSON, and back; nothing if the text is none.
std::string lock_holder_text(const LockHolder& holder);
std::optional<LockHolder> parse_lock_holder(const std::string& line);

// "job 17 on n2 (process 4711)"
std::string describe_lock_holder(const LockHolder& holder);

// What `own`, who wants the lock, can know at once of `holder`.
enum class Liveness : std::uint8_t {
  gone,    // an earlier run of the same job, or a process of this node that has ended
  alive,   // a process of this node that runs
  unknown  // elsewhere, or stopped: only its heartbeats tell
};
Liveness liveness_of(const LockHolder& holder, const LockHolder& own);

}  // namespace lockstep
