#include "scaling/exchange.hpp"

#include <gtest/gtest.h>

namespace lockstep::exchange_test {

TEST(Exchange, the_busiest_link_limits_servers) {
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({2, 2}, 1), 1);
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({8, 8}, 1), 7);
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({8, 8}, 2), 3);        // of six trainers, each server gets half
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({8, 8}, 4), 1);        // no more than a trainer sends
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({8, 4}, 2), 6);        // both on the last node
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({8, 4}, 1), 6);        // one trainer beside it
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({8, 2}, 6), 4.0 / 3);  // of two trainers, two thirds to another node
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({6, 4}, 1), 4);        // the last node has no rank
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({8, 1}, 2), 3);
  EXPECT_DOUBLE_EQ(pushed_through_busiest_link({8, 1}, 6), 1);
}

TEST(Exchange, is_named_by_the_options_of_a_training) {
  EXPECT_EQ(name_of({}), "all-reduce");
  EXPECT_EQ(options_of({.local_steps = 16}), "--sync local --local-steps 16");
  EXPECT_EQ(options_of({.servers = 2}), "--sync ps --servers 2");
  EXPECT_EQ(options_of({.powersgd_rank = 4}), "--compress powersgd:4");
}

}  // namespace lockstep::exchange_test
