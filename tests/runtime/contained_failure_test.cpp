// Whose failure all ranks throw, and when they learn of it.
#include "runtime/failure/contained_failure.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <optional>
#include <stdexcept>

#include "base/log.hpp"
#include "base/output_closed.hpp"

namespace lockstep::contained_failure_test {

class ContainedFailureTest : public testing::Test {
 protected:
  ContainedFailureTest() { log::set_identity(world_.rank(), "n1"); }

  bool is_last() const { return world_.rank() == world_.size() - 1; }
  // What all ranks throw if the last one throws `exception`.
  template <typename Exception>
  AgreedError agreed(const Exception& exception) const {
    try {
      on_all_ranks(world_, [&] {
        if (is_last()) throw exception;
      });
    } catch (const AgreedError& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return {Error(""), -1};
  }

  Communicator world_{MPI_COMM_WORLD};
};

TEST_F(ContainedFailureTest, work_that_succeeds_on_all_ranks_is_done_on_all) {
  int calls = 0;
  on_all_ranks(world_, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST_F(ContainedFailureTest, all_ranks_throw_what_one_throws) {
  const AgreedError error = agreed(Error(Failure::bad_data, "'a.h5' is damaged."));
  EXPECT_EQ(error.failure(), Failure::bad_data);
  EXPECT_STREQ(error.what(), "'a.h5' is damaged.");
  EXPECT_EQ(error.rank(), world_.size() - 1);
}

TEST_F(ContainedFailureTest, exceptions_of_libraries_become_errors) {
  EXPECT_EQ(agreed(std::bad_alloc()).failure(), Failure::out_of_memory);
  EXPECT_EQ(agreed(std::length_error("")).failure(), Failure::out_of_memory);
  EXPECT_EQ(agreed(std::runtime_error("odd")).failure(), Failure::other);
  EXPECT_STREQ(agreed(std::runtime_error("odd")).what(), "odd");
  EXPECT_EQ(agreed(7).failure(), Failure::other);
  EXPECT_EQ(agreed(OutputClosed()).failure(), Failure::output_closed);
}

TEST_F(ContainedFailureTest, of_several_failures_the_lowest_rank_counts) {
  try {
    on_all_ranks(world_, [&] { throw Error(std::to_string(world_.rank())); });
    FAIL() << "no error";
  } catch (const AgreedError& error) {
    EXPECT_STREQ(error.what(), "0");
    EXPECT_EQ(error.rank(), 0);
  }
}

TEST_F(ContainedFailureTest, a_rank_that_has_failed_does_no_more_work_and_keeps_its_first_error) {
  ContainedFailure failure(world_);
  bool goes_on = false;
  failure.run([&] {
    if (is_last()) throw Error("the first");
  });
  EXPECT_EQ(failure.has_failed(), is_last());
  failure.run([&] {
    goes_on = true;
    if (is_last()) throw Error("the second");
  });
  EXPECT_EQ(goes_on, !is_last());
  try {
    failure.agree(Phase::meeting);
    FAIL() << "no error";
  } catch (const AgreedError& error) {
    EXPECT_STREQ(error.what(), "the first");
  }
}

TEST_F(ContainedFailureTest, an_agreed_error_passes) {
  ContainedFailure failure(world_);
  EXPECT_THROW(failure.run([&] { throw AgreedError(Error("agreed"), 0); }), AgreedError);
  EXPECT_FALSE(failure.has_failed());
}

TEST_F(ContainedFailureTest, who_waits_for_the_others_says_so) {
  rank_status::enter(Phase::testing);
  ContainedFailure failure(world_);
  const std::int64_t before = rank_status::record().spent_ns[static_cast<std::size_t>(Phase::gathering)];
  failure.agree(Phase::gathering);
  EXPECT_EQ(rank_status::record().phase, Phase::testing);
  const std::int64_t after = rank_status::record().spent_ns[static_cast<std::size_t>(Phase::gathering)];
  EXPECT_EQ(after > before, world_.size() > 1);
}

TEST_F(ContainedFailureTest, all_ranks_get_what_rank_0_has_found) {
  int calls = 0;
  const std::string found = from_rank_0(world_, [&] {
    ++calls;
    return "found by rank " + std::to_string(world_.rank());
  });
  EXPECT_EQ(found, "found by rank 0");
  EXPECT_EQ(calls, world_.rank() == 0 ? 1 : 0);
}

// The others waited for what rank 0 had refused, until the job was aborted.
TEST_F(ContainedFailureTest, all_ranks_throw_what_rank_0_throws) {
  try {
    from_rank_0(world_, []() -> std::string { throw Error(Failure::bad_data, "no checkpoint can be read"); });
    FAIL() << "no error";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.failure(), Failure::bad_data);
    EXPECT_STREQ(error.what(), "no checkpoint can be read");
    EXPECT_EQ(error.rank(), 0);
  }
}

}  // namespace lockstep::contained_failure_test
