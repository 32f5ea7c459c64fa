#include "device/cpu/threads/parallel.hpp"

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

namespace lockstep::cpu::parallel_test {

TEST(ParallelTest, every_piece_is_computed_once) {
  for (const int threads : {1, 2, 3, 7}) {
    for (const std::int64_t count : {0, 1, 2, 3, 10, 1000}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
      parallel_for(threads, count, [&](std::int64_t i) { ++times[static_cast<std::size_t>(i)]; });
      for (const std::atomic<int>& computed : times) EXPECT_EQ(computed, 1) << threads << " threads, " << count;
    }
  }
}

TEST(ParallelTest, parts_cover_all_elements) {
  for (const std::int64_t count : {1, 4096, 4097, 1'000'000}) {
    std::atomic<std::int64_t> covered = 0;
    std::atomic<std::int64_t> sum = 0;
    parallel_parts(3, count, [&](std::int64_t first, std::int64_t last) {
      EXPECT_LT(first, last);
      covered += last - first;
      for (std::int64_t i = first; i < last; ++i) sum += i;
    });
    EXPECT_EQ(covered, count);
    EXPECT_EQ(sum, count * (count - 1) / 2);
  }
}

TEST(ParallelTest, short_loops_over_cheap_elements_wake_no_one) {
  parallel_parts(3, 4096, [caller = std::this_thread::get_id()](std::int64_t first, std::int64_t last) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(last - first, 4096);
  });
}

TEST(ParallelTest, a_number_is_one_thread) {
  std::vector<std::thread::id> first(4);
  std::vector<std::thread::id> second(4);
  on_each_thread(4, [&](int thread) { first[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
  parallel_for(2, 100, [](std::int64_t) {});
  on_each_thread(4, [&](int thread) { second[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 4U);
  EXPECT_EQ(first[0], std::this_thread::get_id());
}

TEST(ParallelTest, pieces_that_run_together_have_different_threads) {
  std::vector<std::atomic<bool>> is_busy(3);
  for (int round = 0; round < 100; ++round) {
    parallel_pieces(3, 50, [&](int thread, std::int64_t) {
      std::atomic<bool>& busy = is_busy[static_cast<std::size_t>(thread)];
      EXPECT_FALSE(busy.exchange(true));
      std::this_thread::yield();
      busy = false;
    });
  }
}

// Whichever thread has piece 0 waits there until all others are done.
TEST(ParallelTest, others_do_the_share_of_a_thread_that_is_held_up) {
  constexpr std::int64_t count = 30;
  std::atomic<std::int64_t> done = 0;
  std::int64_t done_before_it = 0;
  parallel_for(3, count, [&](std::int64_t i) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (i == 0 && done < count - 1 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    if (i == 0) done_before_it = done;
    ++done;
  });
  EXPECT_EQ(done_before_it, count - 1);
  EXPECT_EQ(done, count);
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
  on_each_thread(3, [](int) {});
  const auto seconds = [] {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  };
  const double before = seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(seconds() - before, 0.1);
  std::atomic<int> woken = 0;
  on_each_thread(3, [&](int) { ++woken; });
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
    on_each_thread(4000, [](int) {});
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    _exit(error.exit_code());
  }
  _exit(0);
}

TEST(ParallelDeathTest, threads_that_the_system_refuses_are_named) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ask_for_too_many_threads(), testing::ExitedWithCode(1), "thread [0-9]+ of 4000: .*--threads");
}

}  // namespace lockstep::cpu::parallel_test
