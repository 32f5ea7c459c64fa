#include "base/net/line_socket.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <memory>

#include "base/net/line_listener.hpp"

namespace lockstep::line_socket_test {

using State = LineSocket::State;
constexpr std::size_t longest = 4 << 20;

class LineSocketTest : public testing::Test {
 protected:
  LineSocketTest() {
    near_ = connect_to("127.0.0.1", listener_.port(), std::chrono::seconds(5), longest);
    wait_for(listener_.handle());
    far_ = listener_.accept(longest);
  }

  static void wait_for(int handle) {
    pollfd wait{handle, POLLIN, 0};
    ::poll(&wait, 1, 5000);
  }
  std::vector<std::string> received() {
    wait_for(far_->handle());
    return far_->receive();
  }

  LineListener listener_;
  std::unique_ptr<LineSocket> near_;
  std::unique_ptr<LineSocket> far_;
};

TEST_F(LineSocketTest, carries_lines_both_ways) {
  near_->send("first");
  near_->send("");
  near_->send("third");
  std::vector<std::string> lines;
  while (lines.size() < 3 && far_->state() == State::open) {
    for (std::string& line : received()) lines.push_back(std::move(line));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"first", "", "third"}));
  far_->send("answer");
  wait_for(near_->handle());
  EXPECT_EQ(near_->receive(), std::vector<std::string>{"answer"});
  EXPECT_EQ(near_->state(), State::open);
}

TEST_F(LineSocketTest, does_not_wait_where_nothing_has_come) { EXPECT_TRUE(far_->receive().empty()); }

TEST_F(LineSocketTest, gives_what_was_said_before_the_end_and_then_the_end) {
  near_->send("last words");
  near_.reset();
  std::vector<std::string> lines = received();
  while (far_->state() == State::open) {
    for (std::string& line : received()) lines.push_back(std::move(line));
  }
  EXPECT_EQ(lines, std::vector<std::string>{"last words"});
  EXPECT_EQ(far_->state(), State::ended);
}

TEST_F(LineSocketTest, keeps_what_the_other_end_does_not_take_yet) {
  const std::string line(1 << 20, 'x');
  for (int i = 0; i < 8; ++i) near_->send(line);
  std::size_t lines = 0;
  while (lines < 8 && far_->state() == State::open) {
    lines += received().size();
    near_->receive();  // hands on the rest
  }
  EXPECT_EQ(lines, 8U);
}

TEST_F(LineSocketTest, gives_up_on_a_line_that_has_no_end) {
  near_->send(std::string(16 << 20, 'x'));
  while (far_->state() == State::open) {
    near_->receive();  // hands on the rest
    EXPECT_TRUE(received().empty());
  }
  EXPECT_EQ(far_->state(), State::unreachable);
}

// A call took in lines for as long as any came: memory grew by 200 MB a second, and the caller never got on.
TEST_F(LineSocketTest, a_call_ends_while_lines_still_come) {
  std::size_t taken = 0;
  for (int i = 0; i < 16; ++i) near_->send(std::string(1 << 20, '\n'));
  for (int call = 0; call < 10; ++call) {
    wait_for(far_->handle());
    const std::size_t lines = far_->receive().size();
    EXPECT_LE(lines, 1U << 16);
    taken += lines;
    near_->receive();  // hands on the rest
  }
  EXPECT_GT(taken, 0U);
  EXPECT_EQ(far_->state(), State::open);
}

TEST_F(LineSocketTest, a_line_is_as_long_as_was_allowed_and_no_longer) {
  far_->set_longest_line(10);
  near_->send("0123456789");
  EXPECT_EQ(received(), std::vector<std::string>{"0123456789"});
  near_->send("a");
  near_->send("0123456789+");
  near_->send("b");
  std::vector<std::string> lines;
  while (far_->state() == State::open) {
    for (std::string& line : received()) lines.push_back(std::move(line));
  }
  EXPECT_EQ(lines, std::vector<std::string>{"a"}) << "what follows is not taken in either";
  EXPECT_EQ(far_->state(), State::unreachable);
}

TEST_F(LineSocketTest, who_may_say_little_is_heard_for_little_at_a_time) {
  far_->set_longest_line(10);
  near_->send(std::string(1 << 16, '\n'));
  wait_for(far_->handle());
  EXPECT_LE(far_->receive().size(), 44U);
}

}  // namespace lockstep::line_socket_test
