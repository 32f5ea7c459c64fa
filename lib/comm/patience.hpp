// Waiting for other ranks without occupying a core.
#pragma once

#include <mpi.h>

#include <chrono>
#include <string_view>
#include <thread>

namespace lockstep {

// Waits for a nonblocking MPI operation. Tests it for a few microseconds without a pause. Then it sleeps between tests,
// up to a millisecond, so that waiting ranks leave the cores to working ones. `task` as in check_mpi.
void wait_with_backoff(MPI_Request& request, std::string_view task);

// Waits for memory that another rank writes. Polls without a pause while ranks in step usually arrive. Then it yields
// the core between polls, because there may be fewer cores than ranks.
template <typename Condition>
void wait_until(const Condition& condition) {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  constexpr int looks = 64;  // between two reads of the clock
  const auto start = Clock::now();
  const auto looks_long = [&] {
    for (int look = 0; look < looks; ++look) {
      if (condition()) return true;
    }
    return condition();
  };
  while (!looks_long()) {
    const auto waited = Clock::now() - start;
    if (waited > 5ms) {
      std::this_thread::sleep_for(50us);
    } else if (waited > 50us) {
      std::this_thread::yield();
    }
  }
}

}  // namespace lockstep
