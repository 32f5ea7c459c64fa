// Named ranges of time in profilers that read NVTX, such as Nsight Systems, in NVTX's domain "lockstep". Without a
// profiler, a call tests a pointer. A build without CUDA has no ranges.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

// A range of the calling thread, from construction to destruction. A thread's ranges nest. The profiler copies the
// name.
class ProfilerRange {
 public:
  explicit ProfilerRange(std::string_view name) noexcept;
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
  ~ProfilerRange();
};

// One range after another, from calls that do not nest with a thread's other ranges. Used by one thread at a time.
class ProfilerPhases {
 public:
  void enter(std::string_view name) noexcept;  // ends the current one
  void leave() noexcept;                       // without a current one: no effect

 private:
  std::uint64_t current_ = 0;  // 0: none
};

}  // namespace lockstep
