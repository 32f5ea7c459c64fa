#include "runtime/stop/stop_signal.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/io/descriptor.hpp"
#include "runtime/watch/wake.hpp"

namespace lockstep {
namespace {

TEST(StopSignalTest, notes_the_first_signal_and_lives_on) {
  for (const auto& [signal, words] :
       {std::pair(SIGTERM, "SIGTERM"), std::pair(SIGUSR1, "SIGUSR1"), std::pair(SIGINT, "SIGINT")}) {
    const StopSignal stop;
    EXPECT_FALSE(stop.is_requested());
    ::raise(signal);
    EXPECT_TRUE(stop.is_requested());
    EXPECT_EQ(stop.words(), words);
  }
}

// While a training stood in a sum that nobody would join, its watcher was not told that the launcher had seen a death.
TEST(StopSignalTest, the_watcher_hears_of_sigterm_too) {
  const Descriptor descriptor(make_wake());
  const StopSignal stop;
  wake_on_signal(SIGTERM, descriptor, Wake::terminate);
  EXPECT_FALSE(terminate_only_wakes());
  ::raise(SIGTERM);
  EXPECT_TRUE(stop.is_requested());
  EXPECT_TRUE(read_wakes(descriptor).terminate);
  ignore_wakes();
}

TEST(StopSignalTest, the_same_request_delivered_twice_is_one) {
  const StopSignal stop;
  ::raise(SIGUSR1);
  ::raise(SIGUSR1);
  ::raise(SIGTERM);
  EXPECT_EQ(stop.words(), "SIGUSR1");
}

TEST(StopSignalTest, a_second_request_ends_the_process_at_once) {
  EXPECT_EXIT(
      {
        const StopSignal stop;
        ::raise(SIGTERM);
        std::this_thread::sleep_for(std::chrono::milliseconds(1100));
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignalTest, before_and_after_it_signals_are_as_they_were) {
  static volatile std::sig_atomic_t seen = 0;
  std::signal(SIGUSR1, [](int) { seen = seen + 1; });
  { const StopSignal stop; }
  ::raise(SIGUSR1);
  EXPECT_EQ(seen, 1);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(StopSignalTest, after_a_request_more_of_the_same_do_not_kill_a_process_on_its_way_out) {
  EXPECT_EXIT(
      {
        {
          const StopSignal stop;
          ::raise(SIGTERM);
        }
        ::raise(SIGTERM);
        std::_Exit(75);
      },
      testing::ExitedWithCode(75), "");
}

}  // namespace
}  // namespace lockstep
