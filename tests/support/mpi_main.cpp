// Runs GoogleTest on every rank and gives one verdict for all: a failure on any rank fails the test, so does running no
// test at all, and only "skipped on every rank" counts as skipped.
#include <fmt/core.h>
#include <mpi.h>

#include <cstdio>

#include "comm/mpi_session.hpp"
#include "support/chosen_source.hpp"
#include "support/verdict.hpp"

namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// Prints failures with the rank they happened on. A fatal one leaves the test early, which would pair this rank's next
// collective with another one of the others': it ends the job.
class RankListener final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    fmt::print(stderr, "[rank {}] {}:{}: {}\n", world_rank(), result.file_name() == nullptr ? "" : result.file_name(),
               result.line_number(), result.message());
    std::fflush(stderr);
    if (result.fatally_failed()) MPI_Abort(MPI_COMM_WORLD, 1);
  }
};

}  // namespace

int main(int argc, char** argv) {
  const lockstep::MpiSession mpi(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  lockstep::test::choose_source(argc, argv);
  // An exception must end the job at once: caught, it would leave the other ranks in a collective.
  GTEST_FLAG_SET(catch_exceptions, false);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (world_rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankListener);
  [[maybe_unused]] const int code = RUN_ALL_TESTS();

  int verdict = static_cast<int>(lockstep::test::local_verdict());
  MPI_Allreduce(MPI_IN_PLACE, &verdict, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return lockstep::test::exit_code(static_cast<lockstep::test::ExitReport>(verdict));
}
