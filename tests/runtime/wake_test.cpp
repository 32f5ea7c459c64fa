#include "runtime/watch/wake.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/io/descriptor.hpp"

namespace lockstep {
namespace {

TEST(Wake, each_word_is_heard_once_and_by_itself) {
  const Descriptor descriptor(make_wake());
  EXPECT_FALSE(read_wakes(descriptor).stop);
  wake(descriptor, Wake::say_where);
  wake(descriptor, Wake::say_where);
  const Wakes heard = read_wakes(descriptor);
  EXPECT_TRUE(heard.say_where);
  EXPECT_FALSE(heard.stop);
  EXPECT_FALSE(heard.terminate);
  EXPECT_FALSE(read_wakes(descriptor).say_where);
  wake(descriptor, Wake::stop);
  wake(descriptor, Wake::terminate);
  const Wakes both = read_wakes(descriptor);
  EXPECT_TRUE(both.stop && both.terminate && !both.say_where);
}

TEST(Wake, signals_say_their_word_and_keep_errno) {
  const Descriptor descriptor(make_wake());
  wake_on_signal(SIGTERM, descriptor, Wake::terminate);
  wake_on_signal(SIGUSR2, descriptor, Wake::say_where);
  errno = ENOSPC;
  ::raise(SIGTERM);
  ::raise(SIGUSR2);
  EXPECT_EQ(errno, ENOSPC);
  const Wakes heard = read_wakes(descriptor);
  EXPECT_TRUE(heard.terminate && heard.say_where && !heard.stop);
  ignore_wakes();
}

TEST(Wake, a_handler_that_stands_keeps_standing_and_passes_the_signal_on) {
  const Descriptor descriptor(make_wake());
  std::signal(SIGTERM, [](int) { pass_on_terminate(); });
  wake_on_signal(SIGTERM, descriptor, Wake::terminate);
  EXPECT_FALSE(terminate_only_wakes());
  ::raise(SIGTERM);
  EXPECT_TRUE(read_wakes(descriptor).terminate);
  ignore_wakes();
  ::raise(SIGTERM);
  EXPECT_FALSE(read_wakes(descriptor).terminate);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace
}  // namespace lockstep
