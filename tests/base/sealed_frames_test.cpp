// Messages of any bytes between two ends that know a token, and damage on the way between them.
#include "base/net/sealed_frames.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/net/line_listener.hpp"

namespace lockstep::sealed_frames_test {

using namespace std::chrono_literals;
using Side = LinkSeal::Side;
using State = SealedSocket::State;
using Bytes = std::vector<std::byte>;

constexpr std::size_t longest = 8 << 20;

// One end of a connection whose other end is a plain socket: the network.
struct End {
  std::unique_ptr<SealedFrames> frames;
  Descriptor network;
};

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class SealedFramesTest : public testing::Test {
 protected:
  End make(Side side, std::size_t longest_message = longest) const {
    std::array<int, 2> sockets{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
    auto socket = std::make_unique<SealedSocket>(std::make_unique<LineSocket>(sockets[0], 100),
                                                 LinkSeal(token_, challenge_0_, challenge_1_, side));
    return {std::make_unique<SealedFrames>(std::move(socket), longest_message), Descriptor(sockets[1])};
  }
  // What an end puts onto the network for a message.
  Bytes sent(End& end, std::string_view text) const {
    end.frames->send({std::as_bytes(std::span(text))});
    Bytes bytes(1000);
    bytes.resize(static_cast<std::size_t>(::recv(end.network, bytes.data(), bytes.size(), 0)));
    return bytes;
  }
  static void inject(const End& end, std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(end.network, bytes.data(), bytes.size(), 0), std::ssize(bytes));
  }
  static std::optional<Bytes> received(End& end) {
    const auto message = end.frames->receive();
    if (!message) return std::nullopt;
    return Bytes(message->begin(), message->end());
  }

  const std::string token_ = draw_secret();
  const std::string challenge_0_ = draw_secret();
  const std::string challenge_1_ = draw_secret();
};

// The push of a slow trainer may come while the server is in a test of minutes.
TEST_F(SealedFramesTest, a_peer_may_be_given_any_time) {
  const LineListener listener;
  const auto seconds_of = [](const SealedFrames& frames) {
    unsigned milliseconds = 0;
    socklen_t length = sizeof milliseconds;
    EXPECT_EQ(::getsockopt(frames.handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &length), 0);
    return milliseconds / 1000;
  };
  SealedFrames frames(std::make_unique<SealedSocket>(connect_to("127.0.0.1", listener.port(), 5s, 100),
                                                     LinkSeal(token_, challenge_0_, challenge_1_, Side::caller)),
                      longest);
  EXPECT_EQ(seconds_of(frames), 8U);
  frames.wait_for_busy_peer();
  EXPECT_EQ(seconds_of(frames), 0U);  // unlimited
}

TEST_F(SealedFramesTest, messages_arrive_whole_and_in_order) {
  End caller = make(Side::caller);
  End listener = make(Side::listener);
  const std::string with_newlines("a\nb\0c", 5);
  Bytes all;
  for (const std::string& text : {std::string("one"), std::string(), with_newlines}) {
    const Bytes bytes = sent(caller, text);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  for (const std::byte byte : all) {  // however the network cuts them
    inject(listener, {&byte, 1});
    if (&byte == &all.back()) break;
  }
  EXPECT_EQ(received(listener), bytes_of("one"));
  EXPECT_EQ(received(listener), Bytes());
  EXPECT_EQ(received(listener), bytes_of(with_newlines));
  EXPECT_EQ(received(listener), std::nullopt);
  EXPECT_EQ(listener.frames->state(), State::open);
}

// Larger than what the system buffers, in several parts.
TEST_F(SealedFramesTest, neither_end_blocks_on_a_long_message) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  const auto frames = [&](int socket, Side side) {
    return SealedFrames(std::make_unique<SealedSocket>(std::make_unique<LineSocket>(socket, 100),
                                                       LinkSeal(token_, challenge_0_, challenge_1_, side)),
                        longest);
  };
  SealedFrames caller = frames(sockets[0], Side::caller);
  SealedFrames listener = frames(sockets[1], Side::listener);
  Bytes values(longest - 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i * 7);
  caller.send({std::as_bytes(std::span(std::string_view("abc"))), values});
  EXPECT_TRUE(caller.has_unsent());
  std::optional<std::span<const std::byte>> message;
  for (int i = 0; i < 100000 && !(message = listener.receive()); ++i) caller.receive();
  ASSERT_TRUE(message.has_value());
  EXPECT_FALSE(caller.has_unsent());
  EXPECT_EQ(message->size(), longest);
  EXPECT_EQ(Bytes(message->begin() + 3, message->end()), values);
}

TEST_F(SealedFramesTest, nothing_of_a_message_that_was_changed_is_delivered) {
  End caller = make(Side::caller);
  const Bytes whole = sent(caller, "gradients");
  for (std::size_t place = 0; place < whole.size(); ++place) {
    End listener = make(Side::listener);
    Bytes changed = whole;
    changed[place] ^= std::byte{1};
    inject(listener, changed);
    EXPECT_EQ(received(listener), std::nullopt) << place;
    if (place < sizeof(std::uint64_t)) continue;  // it may seem to be longer, and not to be there yet
    EXPECT_EQ(listener.frames->state(), State::forged) << place;
  }
}

TEST_F(SealedFramesTest, what_is_repeated_reflected_or_left_out_is_forged) {
  End caller = make(Side::caller);
  const Bytes first = sent(caller, "one");
  const Bytes second = sent(caller, "two");
  End repeated = make(Side::listener);
  inject(repeated, first);
  inject(repeated, first);
  EXPECT_EQ(received(repeated), bytes_of("one"));
  EXPECT_EQ(received(repeated), std::nullopt);
  EXPECT_EQ(repeated.frames->state(), State::forged);
  End without_first = make(Side::listener);
  inject(without_first, second);
  EXPECT_EQ(received(without_first), std::nullopt);
  EXPECT_EQ(without_first.frames->state(), State::forged);
  End itself = make(Side::caller);
  inject(itself, first);
  EXPECT_EQ(received(itself), std::nullopt);
  EXPECT_EQ(itself.frames->state(), State::forged);
}

TEST_F(SealedFramesTest, a_message_longer_than_the_limit_is_refused_by_its_length) {
  End caller = make(Side::caller);
  End listener = make(Side::listener, 5);
  inject(listener, sent(caller, "12345"));
  EXPECT_EQ(received(listener), bytes_of("12345"));
  Bytes begin = sent(caller, "123456");
  begin.resize(sizeof(std::uint64_t) + sizeof(LinkSeal::Tag));
  inject(listener, begin);
  EXPECT_EQ(received(listener), std::nullopt);
  EXPECT_EQ(listener.frames->state(), State::forged);
}

TEST_F(SealedFramesTest, an_end_within_a_message_is_an_end) {
  End caller = make(Side::caller);
  End listener = make(Side::listener);
  Bytes part = sent(caller, "gradients");
  part.pop_back();
  inject(listener, part);
  EXPECT_EQ(received(listener), std::nullopt);
  EXPECT_EQ(listener.frames->state(), State::open);
  listener.network = Descriptor(-1);
  EXPECT_EQ(received(listener), std::nullopt);
  EXPECT_EQ(listener.frames->state(), State::ended);
}

}  // namespace lockstep::sealed_frames_test
