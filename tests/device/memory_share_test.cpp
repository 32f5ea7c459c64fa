#include "device/cuda/memory_share.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/messages.hpp"

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
  expect_message(message({1 * gib, 80 * gib}, 1), {"1024"});
  expect_message(message({11 * gib, 80 * gib}, 4), {"11264"});
  EXPECT_EQ(message({12 * gib, 80 * gib}, 4), "accepted");
}

}  // namespace
}  // namespace lockstep::cuda
