// Work of one rank, and whose failure it is.
#include "comm/from_rank_0.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace lockstep {
namespace {

TEST(FromRank0Test, all_ranks_get_what_one_has_found) {
  const Communicator world(MPI_COMM_WORLD);
  int calls = 0;
  const std::string found = from_rank_0(world, [&] {
    ++calls;
    return std::string("found by rank ") + std::to_string(world.rank());
  });
  EXPECT_EQ(found, "found by rank 0");
  EXPECT_EQ(calls, world.rank() == 0 ? 1 : 0);
}

// The others waited for what rank 0 had refused, until the job was aborted.
TEST(FromRank0Test, all_ranks_throw_what_it_throws) {
  const Communicator world(MPI_COMM_WORLD);
  try {
    from_rank_0(world, []() -> std::string { throw Error(Failure::bad_data, "no checkpoint can be read"); });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::bad_data);
    EXPECT_STREQ(error.what(), "no checkpoint can be read");
  }
}

}  // namespace
}  // namespace lockstep
