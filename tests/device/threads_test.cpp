#include "device/cpu/threads/threads.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/messages.hpp"

namespace lockstep::cpu::threads_test {

std::string only_warning(const CoreUse& use, int threads) {
  const std::vector<std::string> warnings = thread_warnings(use, threads);
  EXPECT_EQ(warnings.size(), 1U);
  return warnings.empty() ? "" : warnings.front();
}

using Sentences = std::vector<std::string>;

TEST(ThreadsTest, a_rank_alone_takes_all_cores_it_may_use) {
  EXPECT_EQ(share_of_cores({.node_cores = 64, .allowed_cores = 12, .node_ranks = 1, .sharing_ranks = 1}), 12);
}

TEST(ThreadsTest, ranks_on_the_same_cores_divide_them) {
  EXPECT_EQ(share_of_cores({.node_cores = 16, .allowed_cores = 16, .node_ranks = 4, .sharing_ranks = 4}), 4);
  EXPECT_EQ(share_of_cores({.node_cores = 16, .allowed_cores = 16, .node_ranks = 3, .sharing_ranks = 3}), 5);
}

TEST(ThreadsTest, a_rank_bound_to_cores_of_its_own_takes_all_of_them) {
  EXPECT_EQ(share_of_cores({.node_cores = 16, .allowed_cores = 4, .node_ranks = 4, .sharing_ranks = 1}), 4);
}

TEST(ThreadsTest, more_ranks_than_cores_still_have_a_thread_each) {
  EXPECT_EQ(share_of_cores({.node_cores = 2, .allowed_cores = 2, .node_ranks = 4, .sharing_ranks = 4}), 1);
}

TEST(ThreadsTest, a_fair_share_is_no_reason_to_warn) {
  EXPECT_EQ(thread_warnings({.node_cores = 2, .allowed_cores = 2, .node_ranks = 2, .sharing_ranks = 2}, 1),
            Sentences{});
  EXPECT_EQ(thread_warnings({.node_cores = 16, .allowed_cores = 4, .node_ranks = 4, .sharing_ranks = 1}, 4),
            Sentences{});
  EXPECT_EQ(thread_warnings({.node_cores = 1, .allowed_cores = 1, .node_ranks = 1, .sharing_ranks = 1}, 1),
            Sentences{});
}

TEST(ThreadsTest, warns_of_more_threads_than_cores) {
  expect_message(only_warning({.node_cores = 8, .allowed_cores = 8, .node_ranks = 2, .sharing_ranks = 2}, 6),
                 {"--threads"});
}

TEST(ThreadsTest, warns_of_more_ranks_than_cores) {
  expect_message(only_warning({.node_cores = 2, .allowed_cores = 2, .node_ranks = 4, .sharing_ranks = 4}, 1), {});
}

TEST(ThreadsTest, warns_of_a_rank_bound_to_one_core_of_many) {
  expect_message(only_warning({.node_cores = 16, .allowed_cores = 1, .node_ranks = 2, .sharing_ranks = 1}, 1),
                 {"--bind-to", "16"});
}

TEST(ThreadsTest, a_rank_for_each_core_may_be_bound_to_it) {
  EXPECT_EQ(thread_warnings({.node_cores = 16, .allowed_cores = 1, .node_ranks = 16, .sharing_ranks = 1}, 1),
            Sentences{});
}

TEST(ThreadsTest, sees_the_cores_that_the_system_grants) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(observe_cores(1).allowed_cores, CPU_COUNT(&before));
  EXPECT_EQ(observe_cores(1).sharing_ranks, 1);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(observe_cores(1).allowed_cores, 1);
  EXPECT_EQ(choose_threads(0, 1, 1), 1);
  EXPECT_EQ(choose_threads(5, 1, 1), 5);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace lockstep::cpu::threads_test
