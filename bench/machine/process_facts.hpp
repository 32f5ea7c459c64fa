// Facts that Linux reports about this process, for benchmarks.
#pragma once

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace lockstep {

// Peak resident memory so far.
inline std::int64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    // careful-number: from /proc
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

// Time since the system created this process, including program loading and MPI_Init. Resolution: 10 ms.
inline double seconds_since_process_start() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  // The fields after the program's name, which may contain spaces. state is field 3, starttime is field 22 (proc(5)).
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  // careful-number: from /proc
  const double start = static_cast<double>(std::stoll(field)) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - start;
}

// Clock for work on `threads` threads that this thread starts and waits for. A single thread is timed by its CPU time,
// so that other programs have no effect. Several threads are timed by wall clock.
inline double work_seconds(int threads) {
  timespec now{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace lockstep
