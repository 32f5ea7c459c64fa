#include "scaling/measuring/cpu_contention.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <thread>

#include "support/program.hpp"

namespace lockstep::cpu_contention_test {

// On whatever else runs here, so that only bounds are known.
TEST(CpuContention, another_program_is_counted) {
  const Communicator world(MPI_COMM_WORLD);
  const CpuContention load;
  run_program({"timeout", "0.5", "sh", "-c", "while :; do :; done"});
  const double cores = load.cores(world);
  EXPECT_GT(cores, 0.2);
  EXPECT_LT(cores, std::thread::hardware_concurrency() + 0.5);
}

}  // namespace lockstep::cpu_contention_test
