#include "comm/patience.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/check_mpi.hpp"

namespace lockstep {

void wait_with_backoff(MPI_Request& request, std::string_view task) {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  const auto spin_until = Clock::now() + 30us;
  std::chrono::microseconds nap = 20us;
  for (;;) {
    int complete = 0;
    check_mpi(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), task);
    if (complete != 0) return;
    if (Clock::now() < spin_until) continue;
    std::this_thread::sleep_for(nap);
    nap = std::min<std::chrono::microseconds>(2 * nap, 1ms);
  }
}

}  // namespace lockstep
