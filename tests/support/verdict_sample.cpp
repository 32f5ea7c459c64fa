// Tests that end in every way, for verdict_test to run one by one.
#include <gtest/gtest.h>
#include <mpi.h>

namespace lockstep {
namespace {

int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

TEST(Sample, passes) { SUCCEED(); }

TEST(Sample, skips) { GTEST_SKIP() << "on every rank"; }

TEST(Sample, skips_on_rank_1) {
  if (rank() == 1) GTEST_SKIP() << "here only";
}

TEST(Sample, fails_on_rank_1) { EXPECT_NE(rank(), 1) << "here only"; }

TEST(Sample, fails_fatally_on_rank_1) {
  ASSERT_NE(rank(), 1) << "here only";
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace lockstep
