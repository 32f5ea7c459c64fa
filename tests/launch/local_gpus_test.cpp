#include "launch/local_gpus.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/messages.hpp"

namespace lockstep::local_gpus_test {

TEST(LocalGpus, are_gathered_from_every_rank_of_the_node) {
  const Communicator world(MPI_COMM_WORLD);
  std::vector<std::string> seen;  // rank r sees r GPUs
  for (int gpu = 0; gpu < world.rank(); ++gpu) seen.push_back(std::to_string(gpu) + ":00.0");
  const LocalGpus gpus = gather_local_gpus(world, seen);
  ASSERT_EQ(gpus.size(), static_cast<std::size_t>(world.size()));
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    ASSERT_EQ(gpus[rank].size(), rank);
    if (rank > 0) {
      EXPECT_EQ(gpus[rank].back(), std::to_string(rank - 1) + ":00.0");
    }
  }
}

TEST(LocalGpus, hide_peers_where_each_rank_sees_its_own_alone) {
  EXPECT_TRUE(peers_are_hidden({{"1b"}, {"43"}}));
  EXPECT_FALSE(peers_are_hidden({{"1b", "43"}, {"1b", "43"}}));
  EXPECT_FALSE(peers_are_hidden({{"1b"}, {"1b"}}));          // one GPU that they share hides nothing
  EXPECT_FALSE(peers_are_hidden({{"MIG-1b"}, {"MIG-43"}}));  // a process sees one slice at most
  EXPECT_FALSE(peers_are_hidden({{"1b"}}));
  EXPECT_FALSE(peers_are_hidden({{}, {}}));
}

TEST(LocalGpus, are_seen_by_all_ranks_or_by_none) {
  EXPECT_NO_THROW(require_alike(0, 4));
  EXPECT_NO_THROW(require_alike(4, 4));
  expect_error(Failure::usage, {"3 of 4 ranks", "--device auto", "--device cpu"}, [] { require_alike(3, 4); });
}

TEST(LocalGpus, that_slurm_granted_are_not_replaced_by_the_cpu) {
  EXPECT_NO_THROW(require_no_granted_gpus("", why_no_gpu()));
  expect_error(Failure::bad_node, {"SLURM_STEP_GPUS=0,1", "there is no driver", "--device cpu"}, [] {
    require_no_granted_gpus("SLURM_STEP_GPUS=0,1", {Failure::bad_node, "there is no driver"});
  });
}

}  // namespace lockstep::local_gpus_test
