#include "base/net/node_addresses.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace lockstep::node_addresses_test {

using Addresses = std::vector<std::string>;

TEST(NodeAddresses, this_node_has_an_address_and_the_loopback_is_its_last) {
  const NodeAddresses node = addresses_of_this_node();
  ASSERT_FALSE(node.addresses.empty());
  EXPECT_TRUE(node.addresses.back() == "::1" || node.addresses.back() == "127.0.0.1") << node.addresses.back();
  EXPECT_NE(node.network, "");
}

// A node connected at its own loopback and at its own bridge, whose addresses rank 0's node had too.
TEST(NodeAddresses, an_address_that_both_nodes_have_leads_to_the_own_one) {
  const NodeAddresses theirs{"kernel a", {"10.1.0.5", "172.17.0.1", "fd00::5", "127.0.0.1", "::1"}};
  const NodeAddresses own{"kernel b", {"10.1.0.6", "172.17.0.1", "fd00::6"}};
  EXPECT_EQ(addresses_that_lead_to(theirs, own), (Addresses{"10.1.0.5", "fd00::5"}));
  const NodeAddresses unknown{"", {"10.1.0.5", "127.0.0.1"}};
  EXPECT_EQ(addresses_that_lead_to(unknown, unknown), Addresses{}) << "two that are not known are not the same";
}

TEST(NodeAddresses, a_neighbour_on_the_same_network_is_reached_at_all_of_them) {
  const NodeAddresses node = addresses_of_this_node();
  EXPECT_EQ(addresses_that_lead_to(node, node), node.addresses);
}

TEST(NodeAddresses, a_name_space_of_its_own_is_another_network) {
  NodeAddresses inside;
  bool is_inside = false;
  std::thread([&] {
    is_inside = ::unshare(CLONE_NEWNET) == 0;
    inside = addresses_of_this_node();
  }).join();
  if (!is_inside) GTEST_SKIP() << "this machine allows no network namespaces";
  EXPECT_TRUE(inside.addresses.empty()) << "its loopback is down";
  EXPECT_NE(inside.network, addresses_of_this_node().network);
}

}  // namespace lockstep::node_addresses_test
