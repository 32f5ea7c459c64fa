#include "slurm/submit/cluster_gpus.hpp"

#include <gtest/gtest.h>

namespace lockstep::cluster_gpus_test {

TEST(ClusterGpusTest, resources_named_gpu_are_gpus) {
  for (const char* const resources : {"gpu:4", "gpu", "gpu:a100:4(S:0-1)", "nic:2,gpu:2", "nic:2(S:0,1),gpu:1(S:0)"}) {
    EXPECT_TRUE(has_gpus(resources)) << resources;
  }
  for (const char* const resources : {"(null)", "", "nic:2", "gpus:4", "shard:gpu:8", "mps:100"}) {
    EXPECT_FALSE(has_gpus(resources)) << resources;
  }
}

}  // namespace lockstep::cluster_gpus_test
