#include "runtime/line_socket.hpp"

#include <gtest/gtest.h>
#include <poll.h>

namespace lockstep {
namespace {

using State = LineSocket::State;

class LineSocketTest : public testing::Test {
 protected:
  LineSocketTest() {
    near_ = connect_to("127.0.0.1", listener_.port(), std::chrono::seconds(5));
    wait_for(listener_.handle());
    far_ = listener_.accept();
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

TEST(LineListener, nobody_knocks_where_nobody_listens) {
  int port = 0;
  {
    const LineListener listener;
    ASSERT_TRUE(listener.is_open());
    EXPECT_EQ(listener.accept(), nullptr);
    port = listener.port();
  }
  EXPECT_EQ(connect_to("127.0.0.1", port, std::chrono::seconds(1)), nullptr);
  EXPECT_EQ(connect_to("no address", port, std::chrono::seconds(1)), nullptr);
}

TEST(LineListener, this_node_has_an_address_and_the_loopback_is_its_last) {
  const std::vector<std::string> addresses = addresses_of_this_node();
  ASSERT_FALSE(addresses.empty());
  EXPECT_TRUE(addresses.back() == "::1" || addresses.back() == "127.0.0.1") << addresses.back();
}

}  // namespace
}  // namespace lockstep
