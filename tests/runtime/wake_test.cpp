#include "runtime/watch/wake.hpp"

#include <gtest/gtest.h>

#include "base/io/descriptor.hpp"

namespace lockstep::wake_test {

TEST(Wake, each_word_is_heard_once_and_by_itself) {
  const Descriptor descriptor(make_wake());
  EXPECT_FALSE(read_wakes(descriptor).stop);
  wake(descriptor, Wake::print_status);
  wake(descriptor, Wake::print_status);
  const Wakes heard = read_wakes(descriptor);
  EXPECT_TRUE(heard.print_status);
  EXPECT_FALSE(heard.stop);
  EXPECT_FALSE(heard.terminate);
  EXPECT_FALSE(read_wakes(descriptor).print_status);
  wake(descriptor, Wake::stop);
  wake(descriptor, Wake::terminate);
  const Wakes both = read_wakes(descriptor);
  EXPECT_TRUE(both.stop && both.terminate && !both.print_status);
}

}  // namespace lockstep::wake_test
