// Nodes that find each other, and those who are none: liars, floods, and one who stands between.
#include "base/net/handshake.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/net/link_seal.hpp"
#include "support/network/door.hpp"

namespace lockstep::handshake_test {

using namespace std::chrono_literals;
using State = SealedSocket::State;

std::vector<std::string> wait_for_texts(SealedSocket& socket) {
  const Stopwatch watch;
  std::vector<std::string> texts;
  while (texts.empty() && socket.state() == State::open && watch.seconds() < 10) {
    pollfd wait{socket.handle(), POLLIN, 0};
    ::poll(&wait, 1, 100);
    texts = socket.receive();
  }
  return texts;
}

std::string next_line(LineSocket& socket) {
  const Stopwatch watch;
  while (socket.state() == LineSocket::State::open && watch.seconds() < 10) {
    pollfd wait{socket.handle(), POLLIN, 0};
    ::poll(&wait, 1, 100);
    const std::vector<std::string> lines = socket.receive();
    if (!lines.empty()) return lines.front();
  }
  return "";
}

std::optional<AuthenticatedPeer> connect_at(int port, const std::string& token,
                                            std::chrono::milliseconds patience = 10s) {
  return connect_to_node({"127.0.0.1"}, port, token, patience);
}

AuthenticatedPeer accept_peers(int port, const std::string& token) {
  std::optional<AuthenticatedPeer> node = connect_at(port, token);
  if (!node) throw std::runtime_error("a node is not let in");
  return std::move(*node);
}

// Expects that the door throws out who says `words` after the challenge.
void expect_thrown_out(Door& door, const std::function<std::string(const std::string& challenge)>& words) {
  const std::unique_ptr<LineSocket> socket = connect_to("127.0.0.1", door.port(), 5s, 1000);
  ASSERT_NE(socket, nullptr);
  const std::string challenge = next_line(*socket);
  ASSERT_TRUE(is_secret_text(challenge));
  socket->send(words(challenge));
  EXPECT_EQ(next_line(*socket), "");
  EXPECT_EQ(socket->state(), LineSocket::State::ended);
}

TEST(NodeGreeting, two_that_know_the_token_speak_to_each_other) {
  Door door;
  const AuthenticatedPeer node = accept_peers(door.port(), door.token());
  const std::unique_ptr<SealedSocket> rank_0 = door.close().take(node.challenge);
  ASSERT_NE(rank_0, nullptr);
  node.socket->send("views");
  EXPECT_EQ(wait_for_texts(*rank_0), std::vector<std::string>{"views"});
  rank_0->send("seen");
  EXPECT_EQ(wait_for_texts(*node.socket), std::vector<std::string>{"seen"});
  EXPECT_EQ(door.close().take(draw_secret()), nullptr);
}

// Whoever could connect was taken in with what it said, and the token itself went over the network.
TEST(NodeGreeting, who_does_not_know_the_token_is_thrown_out) {
  Door door;
  EXPECT_FALSE(connect_at(door.port(), draw_secret(), 300ms));
  const std::string own = draw_secret();
  expect_thrown_out(door, [](const std::string&) { return R"(hello {"host":"n9","ranks":[1],"token":""})"; });
  expect_thrown_out(door, [&](const std::string&) { return fmt::format("{} {} hello", own, std::string(64, '0')); });
  expect_thrown_out(door, [&](const std::string& challenge) {
    return fmt::format("{} {}", own, LinkSeal(own, challenge, own, LinkSeal::Side::caller).seal("hello"));
  });
  expect_thrown_out(door, [&](const std::string& challenge) {
    return fmt::format("{} {}", own, LinkSeal(door.token(), challenge, own, LinkSeal::Side::caller).seal("other"));
  });
}

TEST(NodeGreeting, what_a_node_said_at_another_time_opens_nothing) {
  Door door;
  std::string heard;
  const std::string own = draw_secret();
  expect_thrown_out(door, [&](const std::string& challenge) {
    heard = fmt::format("{} {}", own, LinkSeal(door.token(), challenge, own, LinkSeal::Side::caller).seal("hello"));
    return heard + "x";
  });
  expect_thrown_out(door, [&](const std::string&) { return heard; });
}

// Somebody at an address that rank 0 is said to have.
TEST(NodeGreeting, a_false_rank_0_is_passed_by_and_learns_no_token) {
  LineListener listener;
  std::string learned;
  std::jthread liar([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::unique_ptr<LineSocket> socket = listener.accept(1000);
      if (socket == nullptr) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      socket->send(draw_secret());
      learned += next_line(*socket);
      socket->send(std::string(64, '0') + " welcome");
      next_line(*socket);
    }
  });
  const std::string token = draw_secret();
  EXPECT_FALSE(connect_at(listener.port(), token, 1s));
  liar.request_stop();
  liar.join();
  EXPECT_FALSE(learned.empty());
  EXPECT_EQ(learned.find(token), std::string::npos);
}

TEST(NodeGreeting, a_service_that_is_no_rank_0_is_passed_by) {
  LineListener silent;
  std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (const std::unique_ptr<LineSocket> socket = silent.accept(1000)) socket->send("SSH-2.0-OpenSSH_9.2");
      std::this_thread::sleep_for(1ms);
    }
  });
  EXPECT_FALSE(connect_at(silent.port(), draw_secret(), 1s));
}

// Stands between two others and passes on what they say, but for a line that asks to be changed.
class Between {
 public:
  explicit Between(int port) : port_(port) {
    thread_ = std::jthread([this](const std::stop_token& stop) { pass_on(stop); });
  }
  int port() const { return listener_.port(); }

 private:
  void pass_on(const std::stop_token& stop) {
    std::unique_ptr<LineSocket> near;
    while (near == nullptr && !stop.stop_requested()) near = listener_.accept(1000);
    const std::unique_ptr<LineSocket> far = connect_to("127.0.0.1", port_, 5s, 1000);
    while (!stop.stop_requested()) {
      for (const std::string& line : near->receive()) far->send(changed(line));
      for (const std::string& line : far->receive()) near->send(line);
      std::this_thread::sleep_for(1ms);
    }
  }
  static std::string changed(const std::string& line) {
    const bool changes = line.find("change me") != std::string::npos;
    return changes ? line.substr(0, LinkSeal::added_length) + "bye" : line;
  }

  int port_;
  LineListener listener_;
  std::jthread thread_;
};

TEST(NodeGreeting, who_stands_between_can_pass_on_but_not_change) {
  Door door;
  const Between between(door.port());
  const AuthenticatedPeer node = accept_peers(between.port(), door.token());
  const std::unique_ptr<SealedSocket> rank_0 = door.close().take(node.challenge);
  ASSERT_NE(rank_0, nullptr);
  node.socket->send("as it is");
  EXPECT_EQ(wait_for_texts(*rank_0), std::vector<std::string>{"as it is"});
  node.socket->send("change me");
  EXPECT_EQ(wait_for_texts(*rank_0), std::vector<std::string>{});
  EXPECT_EQ(rank_0->state(), State::forged);
  node.socket->send("what follows");
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(rank_0->receive(), std::vector<std::string>{});
}

TEST(NodeGreeting, a_peer_that_sends_nothing_is_dropped) {
  Door door;
  const std::unique_ptr<LineSocket> socket = connect_to("127.0.0.1", door.port(), 5s, 1000);
  ASSERT_TRUE(is_secret_text(next_line(*socket)));
  const Stopwatch watch;
  EXPECT_EQ(next_line(*socket), "");
  EXPECT_EQ(socket->state(), LineSocket::State::ended);
  EXPECT_LT(watch.seconds(), 6);
}

// They took memory, files and the watcher's time without limit.
TEST(NodeGreeting, a_node_gets_in_among_many_unauthenticated_peers) {
  Door door;
  UnauthenticatedPeers unauthenticated(door.port(), 6,
                                       {"newlines", "endless_line", "noise", "hello", "pose", "dawdle", "stay"});
  ASSERT_TRUE(door.fills(8));
  const double memory_before = resident_megabytes();
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(connect_at(door.port(), door.token())) << i;
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_LE(door.max_unauthenticated(), 128U);
  EXPECT_LT(resident_megabytes() - memory_before, 20);
  EXPECT_GT(unauthenticated.wait().connections, 100);
}

TEST(NodeGreeting, a_node_that_is_turned_away_comes_again) {
  LineListener busy;
  const std::string token = draw_secret();
  std::jthread rank_0([&](const std::stop_token& stop) {
    int turned_away = 0;
    while (!stop.stop_requested() && turned_away < 3) turned_away += busy.accept(1000) != nullptr ? 1 : 0;
    while (!stop.stop_requested()) {
      std::unique_ptr<LineSocket> socket = busy.accept(1000);
      if (socket == nullptr) continue;
      const std::string challenge = draw_secret();
      socket->send(challenge);
      const std::string said = next_line(*socket);
      LinkSeal seal(token, challenge, said.substr(0, 64), LinkSeal::Side::listener);
      SealedSocket(std::move(socket), seal).send("welcome");
    }
  });
  EXPECT_TRUE(connect_at(busy.port(), token));
}

// A node went without the link, although it has 15 seconds.
TEST(NodeGreeting, a_listener_that_is_stopped_for_a_while_lets_a_node_in_afterwards) {
  const std::string token = draw_secret();
  HandshakeServer server(token);
  std::jthread rank_0([&](const std::stop_token& stop) {
    std::this_thread::sleep_for(5500ms);  // longer than a node waits for the challenge
    while (!stop.stop_requested()) server.serve(5ms);
  });
  EXPECT_TRUE(connect_at(server.port(), token));
}

}  // namespace lockstep::handshake_test
