#include "device/cuda/gpu_choice.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/messages.hpp"

namespace lockstep::cuda::gpu_choice_test {

using Seen = std::vector<std::vector<std::string>>;

// The address of the GPU that each rank drives.
std::vector<std::string> driven(const Seen& seen) {
  std::vector<std::string> addresses;
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    addresses.push_back(seen[rank][choose_gpu(seen, rank).index]);
  }
  return addresses;
}

TEST(GpuChoiceTest, the_nth_rank_drives_the_nth_gpu_where_all_see_all) {
  const std::vector<std::string> all{"1a", "2b", "3c"};
  EXPECT_EQ(driven({all, all, all}), all);
  EXPECT_EQ(driven({all, all}), (std::vector<std::string>{"1a", "2b"}));
  EXPECT_EQ(choose_gpu({all, all, all}, 2).sharers, 1);
}

TEST(GpuChoiceTest, each_rank_drives_the_one_gpu_it_sees) {
  const Seen seen{{"3c"}, {"1a"}, {"2b"}};
  EXPECT_EQ(driven(seen), (std::vector<std::string>{"3c", "1a", "2b"}));
  EXPECT_EQ(choose_gpu(seen, 1).index, 0U);
}

TEST(GpuChoiceTest, the_order_of_each_ranks_own_list_counts_for_its_index) {
  const Seen seen{{"1a", "2b"}, {"2b", "1a"}};
  EXPECT_EQ(driven(seen), (std::vector<std::string>{"1a", "2b"}));
  EXPECT_EQ(choose_gpu(seen, 1).index, 0U);
}

TEST(GpuChoiceTest, a_rank_makes_room_for_one_that_sees_less) {
  EXPECT_EQ(driven({{"1a", "2b"}, {"1a"}}), (std::vector<std::string>{"2b", "1a"}));
  EXPECT_EQ(driven({{"1a", "2b"}, {"2b", "3c"}, {"1a"}}), (std::vector<std::string>{"2b", "3c", "1a"}));
}

TEST(GpuChoiceTest, more_ranks_than_gpus_share_evenly) {
  const std::vector<std::string> both{"1a", "2b"};
  EXPECT_EQ(driven({both, both, both, both}), (std::vector<std::string>{"1a", "2b", "1a", "2b"}));
  EXPECT_EQ(choose_gpu({both, both, both, both}, 3).sharers, 2);
  EXPECT_EQ(choose_gpu({{"1a"}, {"1a"}}, 0).sharers, 2);
}

TEST(GpuChoiceTest, a_rank_that_sees_no_gpu_is_told_so) {
  try {
    choose_gpu({{"1a"}, {}}, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    expect_message(error.what(), {"CUDA_VISIBLE_DEVICES"});
  }
}

}  // namespace lockstep::cuda::gpu_choice_test
