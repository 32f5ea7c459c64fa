// Operator new of this program, which can be made to fail once.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/watch/rank_status.hpp"

namespace lockstep {

// The next allocation of the main thread, in one of these phases and of this size, fails.
struct FailingAllocation {
  std::atomic<bool> is_armed = false;
  pthread_t thread{};
  std::array<Phase, 2> phases{};
  std::size_t least_bytes = 0;
  std::int64_t first_step = 0;  // counted from 1

  bool fails(std::size_t bytes);
};
extern FailingAllocation failing_allocation;

}  // namespace lockstep
