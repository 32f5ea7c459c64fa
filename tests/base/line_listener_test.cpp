#include "base/net/line_listener.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/io/descriptor.hpp"

namespace lockstep::line_listener_test {

using namespace std::chrono_literals;
constexpr std::size_t longest = 100;

std::unique_ptr<LineSocket> come_to(const LineListener& listener) {
  return connect_to("127.0.0.1", listener.port(), 5s, longest);
}

int readable(int handle, int patience_ms) {
  pollfd look{handle, POLLIN, 0};
  return ::poll(&look, 1, patience_ms);
}

// While this lives the process may have `most` files open.
class MostFiles {
 public:
  explicit MostFiles(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit less{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &less);
  }
  MostFiles(const MostFiles&) = delete;
  MostFiles& operator=(const MostFiles&) = delete;
  ~MostFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(LineListener, nobody_comes_where_nobody_listens) {
  int port = 0;
  {
    LineListener listener;
    ASSERT_TRUE(listener.is_open());
    EXPECT_EQ(listener.accept(longest), nullptr);
    port = listener.port();
  }
  EXPECT_EQ(connect_to("127.0.0.1", port, 1s, longest), nullptr);
  EXPECT_EQ(connect_to("no address", port, 1s, longest), nullptr);
}

TEST(LineListener, is_there_for_both_families) {
  LineListener listener;
  for (const std::string address : {"127.0.0.1", "::1"}) {
    const std::unique_ptr<LineSocket> near = connect_to(address, listener.port(), 5s, longest);
    if (near == nullptr && address == "::1") GTEST_SKIP() << "no IPv6 here";
    ASSERT_NE(near, nullptr);
    EXPECT_EQ(readable(listener.handle(), 5000), 1);
    EXPECT_NE(listener.accept(longest), nullptr);
  }
}

// Connections without limit took all files that the process may have open: neither model nor report could be written.
TEST(LineListener, who_comes_does_not_get_the_last_files) {
  constexpr int most = 80;
  LineListener listener;
  std::vector<std::unique_ptr<LineSocket>> comers;
  for (int i = 0; i < most; ++i) comers.push_back(come_to(listener));
  const MostFiles limit(most + static_cast<rlim_t>(comers.back()->handle()) + 1);
  std::vector<std::unique_ptr<LineSocket>> taken;
  while (std::unique_ptr<LineSocket> socket = listener.accept(longest)) taken.push_back(std::move(socket));
  EXPECT_GT(taken.size(), 10U);
  std::vector<std::unique_ptr<Descriptor>> files;
  for (int i = 0; i < reserved_open_files(max_open_files()); ++i) {
    files.push_back(std::make_unique<Descriptor>(::dup(0)));
    ASSERT_GE(*files.back(), 0) << i;
  }
}

// accept() failed for want of files while poll() said that somebody was there: the caller went round and round.
TEST(LineListener, rests_where_nobody_can_be_let_in_and_then_looks_again) {
  LineListener listener;
  const std::unique_ptr<LineSocket> first = come_to(listener);
  const std::unique_ptr<LineSocket> second = come_to(listener);
  {
    const MostFiles none(static_cast<rlim_t>(second->handle()) + 1);
    ASSERT_EQ(readable(listener.handle(), 5000), 1);
    EXPECT_EQ(listener.accept(longest), nullptr);
    EXPECT_EQ(readable(listener.handle(), 20), 0);
  }
  EXPECT_EQ(listener.accept(longest), nullptr) << "also when asked all the same";
  std::this_thread::sleep_for(150ms);
  EXPECT_EQ(readable(listener.handle(), 5000), 1);
  EXPECT_NE(listener.accept(longest), nullptr);
}

TEST(LineListener, the_reserve_is_a_part_of_what_a_process_may_open) {
  EXPECT_EQ(reserved_open_files(64), 16);
  EXPECT_EQ(reserved_open_files(1024), 128);
  EXPECT_EQ(reserved_open_files(1 << 20), 128);
}

}  // namespace lockstep::line_listener_test
