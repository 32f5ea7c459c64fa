#include "comm/same_on_ranks.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::same_on_ranks_test {

Communicator world() { return Communicator(MPI_COMM_WORLD); }

// What require_same_on_ranks() says on this rank.
std::string refusal(const std::vector<RankValue>& values) {
  return message_of(Failure::usage, [&] { require_same_on_ranks(world(), values, "Copy one of them to all nodes."); });
}

TEST(SameOnRanks, lets_equal_values_pass) {
  EXPECT_EQ(refusal({{"data set 'd'", "root hash 12"}, {"--epochs", "3"}}), "no error");
  EXPECT_EQ(refusal({}), "no error");
}

// Nodes with different copies of a data set trained on a mixture of them, with code 0.
TEST(SameOnRanks, names_the_first_value_that_differs_and_the_ranks_that_have_it) {
  const Communicator all = world();
  log::set_identity(all.rank(), fmt::format("n{}", all.rank() + 1));
  const bool is_odd_one = all.rank() == 1;
  const std::string message =
      refusal({{"program", "1"}, {"data set 'd'", is_odd_one ? "root hash 34" : "root hash 12"}, {"--epochs", "3"}});
  if (all.size() == 1) {
    EXPECT_EQ(message, "no error");
  } else {
    expect_message(message, {"d", "34"});
  }
}

TEST(SameOnRanks, finds_what_only_one_rank_has) {
  const Communicator all = world();
  log::set_identity(all.rank(), "n1");
  std::vector<RankValue> values{{"program", "1"}};
  if (all.rank() == 2) values.push_back({"--wire", "bf16"});
  const std::string message = refusal(values);
  if (all.size() == 1) {
    EXPECT_EQ(message, "no error");
  } else {
    expect_message(message, {"--wire"});
  }
}

}  // namespace lockstep::same_on_ranks_test
