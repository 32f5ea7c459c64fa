// Waiting for other ranks without occupying a core.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

namespace lockstep {

// Polls `condition` until it is true. For a few microseconds it does so without a pause. Then it sleeps between polls,
// up to a millisecond, so that waiting ranks leave the cores to working ones. False if the deadline passed first.
template <typename Condition>
bool poll_with_backoff(const Condition& condition,
                       std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max()) {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  const auto spin_until = Clock::now() + 30us;
  std::chrono::microseconds nap = 20us;
  while (!condition()) {
    const auto now = Clock::now();
    if (now >= deadline) return false;
    if (now < spin_until) continue;
    std::this_thread::sleep_for(nap);
    nap = std::min<std::chrono::microseconds>(2 * nap, 1ms);
  }
  return true;
}

// Waits for a nonblocking MPI operation with poll_with_backoff(). `task` as in check_mpi.
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
