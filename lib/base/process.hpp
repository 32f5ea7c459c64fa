// What the kernel reports about processes of this node, and the scope of their process IDs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// From /proc/PID/stat (proc(5)).
struct ProcessStat {
  char state = '?';               // R, S, D, T (stopped), t (traced), Z (zombie), X (dead), ...
  std::uint64_t start_ticks = 0;  // start time, in clock ticks since the node booted
  std::optional<int> end_status;  // exit status of an ended process, in waitpid()'s encoding

  bool has_ended() const { return state == 'Z' || state == 'X'; }
};
// Nothing if the process has ended and was collected, or cannot be seen.
std::optional<ProcessStat> process_stat(std::int64_t process);

// An identifier of this boot, unique across nodes and reboots. Empty if the system does not provide it.
std::string boot_id();

// The inode of the PID namespace that process IDs belong to, unique within this boot; 0 if the system does not provide
// it.
std::int64_t pid_namespace();

// Gives the signal its default effect, unless it is ignored. UCX, which Open MPI 5 loads, takes SIGHUP for a request to
// print more.
void restore_default_effect(int signal);

}  // namespace lockstep
