#include "device/cuda/memory_share.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace lockstep::cuda {
namespace {

constexpr std::size_t gib = std::size_t{1} << 30;

TEST(MemoryShareTest, a_rank_alone_takes_all_but_what_libraries_need) {
  EXPECT_EQ(memory_share({79 * gib, 80 * gib}, 1), 77 * gib);
  EXPECT_EQ(memory_share({2 * gib + 1, 80 * gib}, 1), 1U);
}

TEST(MemoryShareTest, ranks_that_share_a_gpu_take_alike_whoever_comes_first) {
  EXPECT_EQ(memory_share({79 * gib, 80 * gib}, 4), 10 * gib);
  EXPECT_EQ(memory_share({48 * gib, 80 * gib}, 4), 10 * gib);
}

TEST(MemoryShareTest, a_gpu_that_is_full_is_named_with_its_figures) {
  const auto message = [](const GpuMemory& memory, int sharers) -> std::string {
    try {
      memory_share(memory, sharers);
    } catch (const Error& error) {
      return error.failure() == Failure::out_of_memory ? error.what() : "wrong failure code";
    }
    return "accepted";
  };
  EXPECT_EQ(message({1 * gib, 80 * gib}, 1),
            "the GPU has 1024 of 81920 MiB left (this rank needs 2048 to begin). Does another process use it?");
  EXPECT_EQ(message({11 * gib, 80 * gib}, 4),
            "the GPU has 11264 of 81920 MiB left (this rank needs 12288 to begin). Does another process use it?");
  EXPECT_EQ(message({12 * gib, 80 * gib}, 4), "accepted");
}

}  // namespace
}  // namespace lockstep::cuda
