#include "slurm/node_list.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/messages.hpp"

namespace lockstep::node_list_test {

using Names = std::vector<std::string>;

std::string refusal_of(std::string_view list) {
  try {
    expand_node_list(list);
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::bad_data);
    return error.what();
  }
  return "taken";
}

TEST(NodeListTest, names_ranges_and_several_brackets) {
  EXPECT_EQ(expand_node_list(""), Names());
  EXPECT_EQ(expand_node_list("login"), (Names{"login"}));
  EXPECT_EQ(expand_node_list("n[1-3,7]"), (Names{"n1", "n2", "n3", "n7"}));
  EXPECT_EQ(expand_node_list("gpu[008-010],a-b.c_d"), (Names{"gpu008", "gpu009", "gpu010", "a-b.c_d"}));
  EXPECT_EQ(expand_node_list("n[8-010]"), (Names{"n8", "n9", "n10"}));  // as wide as the first one
  EXPECT_EQ(expand_node_list("r[1-2]n[03-04]x"), (Names{"r1n03x", "r1n04x", "r2n03x", "r2n04x"}));
}

TEST(NodeListTest, what_is_no_list_is_refused_with_its_place) {
  expect_message(refusal_of("n[1-3"), {"'n[1-3'", " 6 "});
  for (const char* wrong : {"n[3-1]", "n[]", "n[1-]", "n[-1]", "n[1,]", "n]", "a,", ",a", "a,,b", "a b", "a;b", "$(a)",
                            "a\nb", "n[1-2", "n[0x1]", "n[1234567890]", "n[1-2]]"}) {
    EXPECT_NE(refusal_of(wrong), "taken") << wrong;
  }
}

TEST(NodeListTest, a_list_that_no_cluster_has_is_refused_before_it_takes_memory) {
  EXPECT_EQ(expand_node_list("n[1-100000]").size(), max_nodes);
  for (const char* wrong : {"n[1-100001]", "n[1-999999999]", "n[1-1000][1-1000]", "n[1-60000],m[1-60000]"}) {
    EXPECT_NE(refusal_of(wrong).find("100000"), std::string::npos) << wrong;
  }
}

}  // namespace lockstep::node_list_test
