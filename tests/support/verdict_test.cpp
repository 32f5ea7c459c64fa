// What a test program of several ranks ends with, for each way that its tests can end.
#include "support/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/program.hpp"

namespace lockstep::verdict_test {

ProgramResult run_sample(const std::string& filter) {
  return run_program(under_mpirun(2, {built_program("verdict_sample").string(), "--gtest_filter=" + filter}));
}

TEST(ExitReport, a_pass_on_all_ranks_is_0) { EXPECT_EQ(run_sample("*.passes").exit_code, 0); }

TEST(ExitReport, skipped_on_all_ranks_is_77) { EXPECT_EQ(run_sample("*.skips").exit_code, 77); }

TEST(ExitReport, skipped_on_one_rank_is_a_pass) { EXPECT_EQ(run_sample("*.skips_on_rank_1").exit_code, 0); }

TEST(ExitReport, a_skip_beside_a_pass_is_a_pass) { EXPECT_EQ(run_sample("*.skips:*.passes").exit_code, 0); }

TEST(ExitReport, running_no_test_is_a_failure) { EXPECT_EQ(run_sample("*.mistyped").exit_code, 1); }

TEST(ExitReport, a_failure_on_one_rank_fails_the_run_and_names_the_rank) {
  const ProgramResult result = run_sample("*.fails_on_rank_1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, testing::HasSubstr("[rank 1] "));
  EXPECT_THAT(result.errors, testing::HasSubstr("here only"));
}

TEST(ExitReport, a_fatal_failure_on_one_rank_leaves_nobody_in_a_collective) {
  const ProgramResult result = run_sample("*.fails_fatally_on_rank_1");
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, testing::HasSubstr("[rank 1] "));
}

}  // namespace lockstep::verdict_test
