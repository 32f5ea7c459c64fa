#include "device/cpu/parallel.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace lockstep::cpu {
namespace {

TEST(ParallelTest, every_piece_is_computed_once) {
  for (const int threads : {1, 2, 3, 7}) {
    for (const std::int64_t count : {0, 1, 2, 3, 10, 1000}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
      parallel_for(threads, count, [&](std::int64_t i) { ++times[static_cast<std::size_t>(i)]; });
      for (const std::atomic<int>& computed : times) EXPECT_EQ(computed, 1) << threads << " threads, " << count;
    }
  }
}

TEST(ParallelTest, parts_are_consecutive_and_one_a_thread) {
  std::atomic<int> parts = 0;
  std::atomic<std::int64_t> covered = 0;
  parallel_parts(3, 10, [&](std::int64_t first, std::int64_t last) {
    ++parts;
    covered += last - first;
    EXPECT_LE(last - first, 4);
  });
  EXPECT_EQ(parts, 3);
  EXPECT_EQ(covered, 10);
}

TEST(ParallelTest, a_piece_stays_with_its_thread) {
  std::vector<std::thread::id> first(4);
  std::vector<std::thread::id> second(4);
  parallel_for(4, 4, [&](std::int64_t i) { first[static_cast<std::size_t>(i)] = std::this_thread::get_id(); });
  parallel_for(2, 100, [](std::int64_t) {});
  parallel_for(4, 4, [&](std::int64_t i) { second[static_cast<std::size_t>(i)] = std::this_thread::get_id(); });
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 4U);
  EXPECT_EQ(first[0], std::this_thread::get_id());
}

TEST(ParallelTest, host_threads_do_not_share_helpers) {
  std::atomic<std::int64_t> sum = 0;
  const auto loop = [&] {
    for (int round = 0; round < 500; ++round) parallel_for(3, 30, [&](std::int64_t i) { sum += i; });
  };
  std::thread other(loop);
  loop();
  other.join();
  EXPECT_EQ(sum, 2 * 500 * 435);
}

TEST(ParallelTest, helpers_with_nothing_to_do_use_no_processor) {
  parallel_for(3, 3, [](std::int64_t) {});
  const auto seconds = [] {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  };
  const double before = seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(seconds() - before, 0.1);
  std::atomic<int> woken = 0;
  parallel_for(3, 3, [&](std::int64_t) { ++woken; });
  EXPECT_EQ(woken, 3);
}

TEST(ParallelTest, loops_without_a_number_have_that_of_their_host_thread) {
  const int before = loop_threads();
  set_loop_threads(3);
  EXPECT_EQ(loop_threads(), 3);
  std::thread([] { EXPECT_EQ(loop_threads(), 1); }).join();
  set_loop_threads(before);
}

// In an address space that has no room for the stacks of so many threads.
[[noreturn]] void ask_for_too_many_threads() {
  const rlimit limit{256 << 20, 256 << 20};
  setrlimit(RLIMIT_AS, &limit);
  try {
    parallel_for(4000, 4000, [](std::int64_t) {});
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    _exit(error.exit_code());
  }
  _exit(0);
}

TEST(ParallelDeathTest, threads_that_the_system_refuses_are_named) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ask_for_too_many_threads(), testing::ExitedWithCode(1),
              "cannot start thread [0-9]+ of 4000 to compute on: .*Fewer --threads");
}

}  // namespace
}  // namespace lockstep::cpu
