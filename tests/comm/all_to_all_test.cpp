#include "comm/all_to_all.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::all_to_all_test {

// Of a length that no other pair of ranks has; those of rank 0 to itself and of each rank to the next are empty.
std::string message_of(int from, int to, int ranks) {
  if (to == (from + 1) % ranks) return "";
  return std::string(static_cast<std::size_t>(1000 * from + to), static_cast<char>('a' + from)) + '\0';
}

TEST(AllToAllTest, each_rank_gets_what_each_rank_sent_to_it) {
  const Communicator world(MPI_COMM_WORLD);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::string> messages;
    for (int to = 0; to < world.size(); ++to) messages.push_back(message_of(world.rank(), to, world.size()));
    const std::vector<std::string> received = all_to_all(world, messages);
    ASSERT_EQ(received.size(), messages.size());
    for (int from = 0; from < world.size(); ++from) {
      EXPECT_EQ(received[static_cast<std::size_t>(from)], message_of(from, world.rank(), world.size())) << from;
    }
  }
}

}  // namespace lockstep::all_to_all_test
