// What Linux knows of this process, for benches.
#pragma once

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace lockstep {

// Of resident memory, so far.
inline std::int64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    // careful-number: from /proc
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

// Since the system made this process, program loading and MPI's start included; to a hundredth of a second.
inline double seconds_since_process_start() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  // The fields behind the program's name, which may hold spaces: state is field 3, starttime field 22 (proc(5)).
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  // careful-number: from /proc
  const double start = static_cast<double>(std::stoll(field)) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - start;
}

// Of work on `threads` threads, started and awaited by this one: alone it counts what the processor gave it, so that
// other programs do not show; several are timed by the clock.
inline double work_seconds(int threads) {
  timespec now{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace lockstep
