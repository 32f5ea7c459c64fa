#include "device/cuda/memory_share.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "support/messages.hpp"

namespace lockstep::cuda::memory_share_test {

constexpr std::size_t gib = std::size_t{1} << 30;

std::string message(const GpuMemory& memory, int sharers, std::size_t limit, Failure failure) {
  try {
    memory_share(memory, sharers, limit);
  } catch (const Error& error) {
    return error.failure() == failure ? error.what() : "wrong failure code";
  }
  return "accepted";
}

TEST(MemoryShareTest, a_rank_alone_takes_all_but_what_libraries_need) {
  EXPECT_EQ(memory_share({79 * gib, 80 * gib}, 1, 0), 75 * gib);
  EXPECT_EQ(memory_share({4 * gib + 1, 80 * gib}, 1, 0), 1U);
}

TEST(MemoryShareTest, ranks_that_share_a_gpu_take_alike_whoever_comes_first) {
  EXPECT_EQ(memory_share({79 * gib, 80 * gib}, 4, 0), 10 * gib);
  EXPECT_EQ(memory_share({48 * gib, 80 * gib}, 4, 0), 10 * gib);
}

TEST(MemoryShareTest, a_limit_is_taken_as_it_is_by_every_rank) {
  EXPECT_EQ(memory_share({79 * gib, 80 * gib}, 1, 3 * gib), 3 * gib);
  EXPECT_EQ(memory_share({4 * gib, 80 * gib}, 1, 3 * gib), 3 * gib);
  EXPECT_EQ(memory_share({20 * gib, 80 * gib}, 4, 19 * gib), 19 * gib);  // more than half, together
}

TEST(MemoryShareTest, a_limit_that_the_gpu_cannot_keep_is_refused_by_every_rank_alike) {
  const GpuMemory gpu{79 * gib, 80 * gib};
  expect_message(message(gpu, 1, 80 * gib, Failure::usage), {"--gpu-memory-limit 81920"});
  expect_message(message(gpu, 4, 20 * gib, Failure::usage), {"--gpu-memory-limit 20480", "4 ranks", "86016"});
  expect_message(message(gpu, 1, std::size_t{1} << 40, Failure::usage), {"--gpu-memory-limit 1048576"});
  expect_message(message({4 * gib - 1, 80 * gib}, 1, 3 * gib, Failure::out_of_memory), {"4095", "4096"});
}

TEST(MemoryShareTest, a_gpu_that_is_full_is_named_with_its_figures) {
  expect_message(message({1 * gib, 80 * gib}, 1, 0, Failure::out_of_memory), {"1024", "--gpu-memory-limit"});
  expect_message(message({11 * gib, 80 * gib}, 4, 0, Failure::out_of_memory), {"11264"});
  EXPECT_EQ(message({12 * gib, 80 * gib}, 4, 0, Failure::out_of_memory), "accepted");
}

}  // namespace lockstep::cuda::memory_share_test
