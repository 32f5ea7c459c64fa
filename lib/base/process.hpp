// What the kernel tells of processes of this node, and of what their numbers mean something in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// From /proc/PID/stat (proc(5)).
struct ProcessStat {
  char state = '?';               // R, S, D, T (stopped), t (traced), Z (ended, and not collected yet), X, ...
  std::uint64_t start_ticks = 0;  // when it started, in clock ticks of this start of the kernel
  std::optional<int> end_status;  // of one that has ended, as waitpid() would give it

  bool has_ended() const { return state == 'Z' || state == 'X'; }
};
// Nothing where the process has ended or cannot be seen.
std::optional<ProcessStat> stat_of(std::int64_t process);

// A word that no other start of a kernel has, here or elsewhere; empty where the system does not say.
std::string kernel_start();

// The name space that numbers of processes belong to, a number of this start of the kernel's; 0 where the system does
// not say.
std::int64_t process_name_space();

}  // namespace lockstep
