#include "train/rank_places.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::rank_places_test {

TEST(RankPlacesTest, one_node_needs_no_numbers) {
  EXPECT_EQ(describe_rank_places(std::vector<std::string>{"n1"}), "1 on n1");
  EXPECT_EQ(describe_rank_places(std::vector<std::string>{"n1", "n1", "n1"}), "3 on n1");
}

TEST(RankPlacesTest, nodes_stand_in_the_order_of_their_first_ranks_with_what_they_have) {
  EXPECT_EQ(describe_rank_places(std::vector<std::string>{"n1", "n1", "n1", "n1", "n2", "n2", "n2", "n2"}),
            "8 on n1 (4), n2 (4)");
  EXPECT_EQ(describe_rank_places(std::vector<std::string>{"n2", "n1", "n2"}), "3 on n2 (2), n1 (1)");
}

TEST(RankPlacesTest, of_many_nodes_eight_are_named_and_the_others_counted) {
  std::vector<std::string> hosts;
  for (int node = 1; node <= 8; ++node) hosts.insert(hosts.end(), 2, "n" + std::to_string(node));
  const std::string eight = "n1 (2), n2 (2), n3 (2), n4 (2), n5 (2), n6 (2), n7 (2), n8 (2)";
  EXPECT_EQ(describe_rank_places(hosts), "16 on " + eight);
  hosts.insert(hosts.end(), 3, "n9");
  EXPECT_EQ(describe_rank_places(hosts), "19 on " + eight + " and 1 node more (3)");
  hosts.emplace_back("n10");
  EXPECT_EQ(describe_rank_places(hosts), "20 on " + eight + " and 2 nodes more (4)");
}

}  // namespace lockstep::rank_places_test
