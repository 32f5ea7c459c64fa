#include "preflight/links.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "comm/communicator.hpp"

namespace lockstep::links_test {

TEST(Links, ranks_of_one_machine_have_one_clock) {
  const ClockFacts facts = compare_clocks(Communicator(MPI_COMM_WORLD));
  EXPECT_LE(std::abs(facts.ahead_seconds), facts.error_seconds + 1e-4);
  EXPECT_LT(facts.error_seconds, 1);
}

TEST(Links, each_rank_has_a_link_to_the_next_and_of_two_ranks_the_first_has_it) {
  const Communicator world(MPI_COMM_WORLD);
  const std::optional<LinkFacts> link = measure_link(world);
  const bool has_one = world.size() > 2 || (world.size() == 2 && world.rank() == 0);
  ASSERT_EQ(link.has_value(), has_one);
  if (!link) return;
  EXPECT_EQ(link->other, (world.rank() + 1) % world.size());
  EXPECT_GT(link->latency_seconds, 0);
  EXPECT_GT(link->bytes_per_second, 1e5);
}

}  // namespace lockstep::links_test
