#include "runtime/stop/process_signals.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/io/descriptor.hpp"
#include "runtime/watch/wake.hpp"

namespace lockstep::process_signals_test {

class ProcessSignalsTest : public testing::Test {
 protected:
  // A test before may have left requests without effect.
  ProcessSignalsTest() {
    for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGPIPE, SIGUSR2}) std::signal(signal, SIG_DFL);
  }
};

TEST_F(ProcessSignalsTest, the_first_request_is_noted_and_the_process_lives_on) {
  for (const auto& [signal, words] : {std::pair(SIGTERM, "SIGTERM"), std::pair(SIGUSR1, "SIGUSR1"),
                                      std::pair(SIGINT, "SIGINT"), std::pair(SIGHUP, "SIGHUP")}) {
    const ProcessSignals signals(Stopping::graceful);
    EXPECT_FALSE(signals.is_stop_requested());
    ::raise(signal);
    EXPECT_TRUE(signals.is_stop_requested());
    EXPECT_EQ(signal_name(signals.request()), words);
  }
}

// A pager that was left, and a terminal that went, ended trainings without a checkpoint.
TEST_F(ProcessSignalsTest, a_reader_that_goes_ends_no_program_that_stops_in_order) {
  const ProcessSignals signals(Stopping::graceful);
  ::raise(SIGPIPE);
  EXPECT_FALSE(signals.is_stop_requested());
}

// With something still to be read, a training that was done ended by the signal.
TEST_F(ProcessSignalsTest, a_program_that_has_ended_in_order_takes_no_requests) {
  ProcessSignals signals(Stopping::graceful);
  signals.ignore_requests();
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP}) ::raise(signal);
  EXPECT_FALSE(signals.is_stop_requested());
}

TEST_F(ProcessSignalsTest, nohup_counts) {
  std::signal(SIGHUP, SIG_IGN);
  const ProcessSignals signals(Stopping::graceful);
  ::raise(SIGHUP);
  EXPECT_FALSE(signals.is_stop_requested());
}

TEST_F(ProcessSignalsTest, the_same_request_delivered_twice_is_one) {
  const ProcessSignals signals(Stopping::graceful);
  ::raise(SIGUSR1);
  ::raise(SIGUSR1);
  ::raise(SIGTERM);
  EXPECT_EQ(signals.request(), SIGUSR1);
}

TEST_F(ProcessSignalsTest, a_second_request_ends_the_process_at_once) {
  EXPECT_EXIT(
      {
        const ProcessSignals signals(Stopping::graceful);
        ::raise(SIGTERM);
        std::this_thread::sleep_for(std::chrono::milliseconds(1100));
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

// It ended without a word.
TEST_F(ProcessSignalsTest, a_second_request_says_so_where_the_rank_speaks) {
  EXPECT_EXIT(
      {
        ProcessSignals signals(Stopping::graceful);
        signals.set_message_prefix("[rank 0, here]");
        ::raise(SIGINT);
        std::this_thread::sleep_for(std::chrono::milliseconds(1100));
        ::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "^\\[rank 0, here\\]  [^\n]+\n$");
}

TEST_F(ProcessSignalsTest, who_sends_SIGTERM_and_SIGCONT_is_known) {
  const ProcessSignals signals(Stopping::graceful);
  EXPECT_EQ(signals.terminate().count, 0U);
  EXPECT_EQ(signals.proceed().count, 0U);
  ::kill(::getpid(), SIGCONT);
  EXPECT_EQ(signals.proceed().count, 1U);
  EXPECT_EQ(signals.proceed().sender, ::getpid());
  EXPECT_FALSE(signals.is_stop_requested());
  ::kill(::getpid(), SIGTERM);
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(signals.terminate().count, 2U);
  EXPECT_EQ(signals.terminate().sender, ::getpid());
}

TEST_F(ProcessSignalsTest, a_program_that_ends_at_once_ends_by_the_first) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGPIPE}) {
    EXPECT_EXIT(
        {
          const ProcessSignals signals(Stopping::immediate);
          ::raise(signal);
        },
        testing::KilledBySignal(signal), "");
  }
}

TEST_F(ProcessSignalsTest, a_request_interrupts_no_read) {
  const ProcessSignals signals(Stopping::graceful);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Descriptor out(ends[0]);
  const Descriptor in(ends[1]);
  const pthread_t reader = ::pthread_self();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::pthread_kill(reader, SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(::write(in, "x", 1), 1);
  });
  char read = 0;
  EXPECT_EQ(::read(out, &read, 1), 1);
  other.join();
  EXPECT_TRUE(signals.is_stop_requested());
}

TEST_F(ProcessSignalsTest, a_question_that_nobody_answers_ends_nobody) {
  const ProcessSignals signals(Stopping::immediate);
  ::raise(SIGUSR2);
}

TEST_F(ProcessSignalsTest, the_watcher_is_woken_and_errno_kept) {
  const Descriptor descriptor(make_wake());
  ProcessSignals signals(Stopping::immediate);
  signals.start_waking(descriptor, WakingSignals::print_status_and_terminate);
  EXPECT_TRUE(signals.terminate_only_wakes());
  errno = ENOSPC;
  ::raise(SIGTERM);
  ::raise(SIGUSR2);
  EXPECT_EQ(errno, ENOSPC);
  const Wakes heard = read_wakes(descriptor);
  EXPECT_TRUE(heard.terminate && heard.print_status && !heard.stop);
  EXPECT_FALSE(signals.is_stop_requested());
}

// While a training stood in a sum that nobody would join, its watcher was not told that the launcher had seen a death.
TEST_F(ProcessSignalsTest, the_watcher_hears_of_sigterm_also_where_it_is_a_request) {
  const Descriptor descriptor(make_wake());
  ProcessSignals signals(Stopping::graceful);
  signals.start_waking(descriptor, WakingSignals::print_status_and_terminate);
  EXPECT_FALSE(signals.terminate_only_wakes());
  ::raise(SIGTERM);
  EXPECT_TRUE(signals.is_stop_requested());
  EXPECT_TRUE(read_wakes(descriptor).terminate);
}

TEST_F(ProcessSignalsTest, the_watcher_of_one_rank_leaves_sigterm_alone) {
  EXPECT_EXIT(
      {
        const Descriptor descriptor(make_wake());
        ProcessSignals signals(Stopping::immediate);
        signals.start_waking(descriptor, WakingSignals::print_status);
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST_F(ProcessSignalsTest, without_a_watcher_any_more_sigterm_ends_the_process_and_a_question_does_not) {
  EXPECT_EXIT(
      {
        const Descriptor descriptor(make_wake());
        ProcessSignals signals(Stopping::immediate);
        signals.start_waking(descriptor, WakingSignals::print_status_and_terminate);
        signals.stop_waking();
        ::raise(SIGUSR2);
        if (read_wakes(descriptor).print_status) std::_Exit(1);
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST_F(ProcessSignalsTest, ranks_that_end_together_are_deaf_to_sigterm_until_the_process_is_gone) {
  EXPECT_EXIT(
      {
        {
          ProcessSignals signals(Stopping::immediate);
          signals.ignore_terminate();
          ::raise(SIGTERM);
        }
        ::raise(SIGTERM);
        std::_Exit(79);
      },
      testing::ExitedWithCode(79), "");
}

TEST_F(ProcessSignalsTest, before_and_after_it_requests_are_as_they_were) {
  static volatile std::sig_atomic_t seen = 0;
  std::signal(SIGUSR1, [](int) { seen = seen + 1; });
  { const ProcessSignals signals(Stopping::graceful); }
  ::raise(SIGUSR1);
  EXPECT_EQ(seen, 1);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_F(ProcessSignalsTest, after_a_request_more_of_the_same_do_not_kill_a_process_on_its_way_out) {
  EXPECT_EXIT(
      {
        {
          const ProcessSignals signals(Stopping::graceful);
          ::raise(SIGTERM);
        }
        ::raise(SIGTERM);
        std::_Exit(75);
      },
      testing::ExitedWithCode(75), "");
}

}  // namespace lockstep::process_signals_test
