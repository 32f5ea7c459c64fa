#include "comm/point_to_point.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "comm/processor_seconds.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::point_to_point_test {

using std::chrono::milliseconds;

constexpr std::size_t large = 3'000'000;  // elements: more than MPI sends before the receiver is there

class PointToPointTest : public testing::Test {
 protected:
  // A message that arrived too often or was left over belongs to the test that sent it.
  ~PointToPointTest() override {
    world_.barrier();
    EXPECT_EQ(try_probe(world_, any_source, any_tag), std::nullopt);
    world_.barrier();
  }

  int next() const { return (world_.rank() + 1) % world_.size(); }
  int previous() const { return (world_.rank() + world_.size() - 1) % world_.size(); }

  const Communicator world_{MPI_COMM_WORLD};
};

template <typename T>
std::vector<T> values_of(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>((static_cast<std::size_t>(rank) * 7 + i) % 100);
  return values;
}

template <typename T>
void go_round(const Communicator& world, int next, int previous) {
  const std::vector<T> sent = values_of<T>(world.rank(), 1'001);
  std::vector<T> received(1'001);
  MessageRequest sending = start_send<T>(world, sent, next, 3);
  EXPECT_EQ(receive<T>(world, received, previous, 3), (MessageInfo{previous, 3, 1'001 * std::int64_t{sizeof(T)}}));
  EXPECT_EQ(received, values_of<T>(previous, 1'001));
  EXPECT_EQ(sending.wait(), (MessageInfo{next, 3, 1'001 * std::int64_t{sizeof(T)}}));
}

TEST_F(PointToPointTest, values_of_every_type_arrive) {
  go_round<float>(world_, next(), previous());
  go_round<double>(world_, next(), previous());
  go_round<std::int32_t>(world_, next(), previous());
  go_round<std::int64_t>(world_, next(), previous());
  go_round<std::byte>(world_, next(), previous());
}

TEST_F(PointToPointTest, messages_with_the_same_tag_arrive_in_order_and_tags_are_told_apart) {
  std::vector<std::int32_t> numbers(200);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<MessageRequest> requests;
  for (const std::int32_t& number : numbers) {
    requests.push_back(start_send<std::int32_t>(world_, {&number, 1}, next(), number % 2));
  }
  for (const int tag : {1, 0}) {
    for (int expected = tag; expected < 200; expected += 2) {
      std::int32_t number = -1;
      receive<std::int32_t>(world_, {&number, 1}, previous(), tag);
      ASSERT_EQ(number, expected);
    }
  }
  wait_all(requests);
}

TEST_F(PointToPointTest, a_probe_tells_the_length_and_leaves_the_message) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{999}, large}) {
    const std::vector<double> sent = values_of<double>(world_.rank(), count);
    const MessageRequest sending = start_send<double>(world_, sent, next(), 5);
    const MessageInfo message = probe(world_, previous(), any_tag);
    EXPECT_EQ(message, (MessageInfo{previous(), 5, static_cast<std::int64_t>(8 * count)}));
    EXPECT_EQ(try_probe(world_, previous(), 5), message);
    std::vector<double> received(message.count<double>());
    receive<double>(world_, received, message.peer, message.tag);
    EXPECT_EQ(received, values_of<double>(previous(), count));
  }
}

TEST_F(PointToPointTest, any_source_receives_each_rank_once) {
  const float value = static_cast<float>(world_.rank());
  const MessageRequest sending = start_send<float>(world_, {&value, 1}, 0, 8);
  if (world_.rank() != 0) return;
  std::vector<int> peers;
  for (int message = 0; message < world_.size(); ++message) {
    float received = -1;
    peers.push_back(receive<float>(world_, {&received, 1}, any_source, 8).peer);
    EXPECT_EQ(received, static_cast<float>(peers.back()));
  }
  std::ranges::sort(peers);
  for (int rank = 0; rank < world_.size(); ++rank) EXPECT_EQ(peers[static_cast<std::size_t>(rank)], rank);
}

TEST_F(PointToPointTest, many_messages_are_in_flight_between_all_ranks) {
  constexpr std::size_t each = 40;
  constexpr std::size_t count = 2'000;
  const auto ranks = static_cast<std::size_t>(world_.size());
  const std::vector<float> sent = values_of<float>(world_.rank(), count);
  std::vector<std::vector<float>> received(each * ranks, std::vector<float>(count));
  std::vector<MessageRequest> receives;
  std::vector<MessageRequest> sends;
  for (std::size_t i = 0; i < each * ranks; ++i) {
    receives.push_back(start_receive<float>(world_, received[i], static_cast<int>(i % ranks), static_cast<int>(i)));
  }
  for (std::size_t i = 0; i < each * ranks; ++i) {
    const std::size_t number = (i / ranks) * ranks + static_cast<std::size_t>(world_.rank());  // the receiver's
    const int destination = static_cast<int>(i % ranks);
    sends.push_back(start_send<float>(world_, std::span(sent).first(i % count), destination, static_cast<int>(number)));
  }
  std::vector<bool> came(each * ranks, false);
  while (const auto completed = wait_any(receives)) {
    EXPECT_FALSE(came[completed->index]);
    came[completed->index] = true;
    EXPECT_EQ(completed->message.peer, static_cast<int>(completed->index % ranks));
    EXPECT_EQ(completed->message.tag, static_cast<int>(completed->index));
    const std::size_t length = completed->message.count<float>();
    const std::vector<float> expected = values_of<float>(completed->message.peer, length);
    EXPECT_TRUE(std::ranges::equal(expected, std::span(received[completed->index]).first(length)));
  }
  EXPECT_EQ(std::ranges::count(came, true), static_cast<std::ptrdiff_t>(each * ranks));
  EXPECT_EQ(wait_all(sends).size(), each * ranks);
  EXPECT_TRUE(wait_all(sends).empty()) << "complete requests are empty";
  EXPECT_FALSE(wait_any(sends));
}

TEST_F(PointToPointTest, a_rank_sends_to_itself) {
  const std::vector<std::int64_t> sent = values_of<std::int64_t>(3, large);
  std::vector<std::int64_t> received(large);
  MessageRequest receiving = start_receive<std::int64_t>(world_, received, world_.rank(), 1);
  send<std::int64_t>(world_, sent, world_.rank(), 1);
  EXPECT_EQ(receiving.wait().peer, world_.rank());
  EXPECT_EQ(received, sent);
}

TEST_F(PointToPointTest, a_test_does_not_wait) {
  float received = 0;
  EXPECT_EQ(try_probe(world_, previous(), 4), std::nullopt);
  MessageRequest receiving = start_receive<float>(world_, {&received, 1}, previous(), 4);
  EXPECT_EQ(receiving.test(), std::nullopt);
  EXPECT_TRUE(receiving.is_active());
  world_.barrier();
  const float value = 2.5F;
  send<float>(world_, {&value, 1}, next(), 4);
  EXPECT_EQ(receiving.wait(), (MessageInfo{previous(), 4, 4}));
  EXPECT_FALSE(receiving.is_active());
  EXPECT_EQ(received, 2.5F);
}

// Sentences that name a rank are approved for messages that a rank sends to itself. Between ranks, MPI takes other
// ways.
class MessageErrorTest : public PointToPointTest, public testing::WithParamInterface<bool> {
 protected:
  template <typename Act>
  void expect_refusal(Subjects subjects, Act act) const {
    if (GetParam()) {
      EXPECT_THROW(act(), Error);
    } else {
      expect_error(Failure::other, subjects, act);
    }
  }

  const Communicator ranks_ = GetParam() ? world_ : Communicator(MPI_COMM_SELF);
  const int to_ = GetParam() ? next() : 0;
  const int from_ = GetParam() ? previous() : 0;
};

TEST_P(MessageErrorTest, a_message_that_does_not_fit_can_be_received_again) {
  const std::vector<float> sent = values_of<float>(ranks_.rank(), 10);
  const MessageRequest sending = start_send<float>(ranks_, sent, to_, 6);
  std::vector<float> received(9);
  expect_refusal({"tag 6", "40 bytes", "36"}, [&] { receive<float>(ranks_, received, from_, 6); });
  received.resize(10);
  receive<float>(ranks_, received, from_, 6);
  EXPECT_EQ(received, values_of<float>(from_, 10));
}

// MPI says "message truncated", but not which message. Open MPI 4.1 says nothing if a rank sends to itself.
TEST_P(MessageErrorTest, a_started_receive_whose_buffer_is_too_short_says_so) {
  std::vector<float> received(9);
  MessageRequest receiving = start_receive<float>(ranks_, received, from_, 6);
  const std::vector<float> sent = values_of<float>(ranks_.rank(), 10);
  MessageRequest sending = start_send<float>(ranks_, sent, to_, 6);
  expect_refusal({"tag 6", "40 bytes", "36"}, [&] { receiving.wait(); });
  EXPECT_FALSE(receiving.is_active());
  sending.wait();
}

TEST_P(MessageErrorTest, a_message_of_another_type_is_refused_if_its_length_shows_it) {
  const std::vector<std::byte> sent(6);
  std::vector<MessageRequest> sends;
  for (int message = 0; message < 2; ++message) sends.push_back(start_send<std::byte>(ranks_, sent, to_, 7));
  std::vector<float> received(9);
  expect_refusal({"tag 7", "6 bytes", "4 bytes"}, [&] { receive<float>(ranks_, received, from_, 7); });
  MessageRequest receiving = start_receive<float>(ranks_, received, from_, 7);
  expect_refusal({"tag 7", "6 bytes", "4 bytes"}, [&] { receiving.wait(); });
  EXPECT_FALSE(receiving.is_active());
  std::vector<std::byte> bytes(6);
  receive<std::byte>(ranks_, bytes, from_, 7);
}

INSTANTIATE_TEST_SUITE_P(Between, MessageErrorTest, testing::Bool(), [](const testing::TestParamInfo<bool>& one) {
  return one.param ? "all_ranks" : "a_rank_and_itself";
});

TEST_F(PointToPointTest, ranks_tags_and_counts_that_do_not_exist_are_refused) {
  float value = 0;
  const std::span<float> one{&value, 1};
  for (const int rank : {-7, world_.size()}) {
    EXPECT_THROW(send<float>(world_, one, rank, 0), Error);
    EXPECT_THROW(start_receive<float>(world_, one, rank, 0), Error);
    EXPECT_THROW(probe(world_, rank, 0), Error);
  }
  for (const int tag : {-7, any_tag}) EXPECT_THROW(send<float>(world_, one, 0, tag), Error);
  EXPECT_THROW(probe(world_, 0, -7), Error);
  EXPECT_THROW(send<float>(world_, one, any_source, 0), Error);
  EXPECT_GE(largest_tag(), 32'767);
  if (largest_tag() < std::numeric_limits<int>::max()) {
    EXPECT_THROW(send<float>(world_, one, 0, largest_tag() + 1), Error);
  }
  const Communicator self(MPI_COMM_SELF);
  expect_error(Failure::other, {"rank 7", "0 to 0"}, [&] { send<float>(self, one, 7, 0); });
  // The largest tag depends on the MPI.
  EXPECT_NE(message_of(Failure::other, [&] { send<float>(self, one, 0, -7); }).find("tag -7. "), std::string::npos);
  // No such values exist, so no byte of them may be read.
  const std::span<const std::byte> too_many(reinterpret_cast<const std::byte*>(&value), std::size_t{1} << 31);
  expect_error(Failure::other, {"2147483648", "2147483647"}, [&] { send<std::byte>(self, too_many, 0, 0); });
}

TEST_F(PointToPointTest, requests_that_are_moved_from_are_empty) {
  float received = 0;
  MessageRequest first = start_receive<float>(world_, {&received, 1}, previous(), 2);
  MessageRequest second(std::move(first));
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what the test is about
  EXPECT_FALSE(first.is_active());
  EXPECT_TRUE(second.is_active());
  MessageRequest third;
  EXPECT_FALSE(third.is_active());
  third = std::move(second);
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  EXPECT_FALSE(second.is_active());
  world_.barrier();
  const float value = 1.5F;
  send<float>(world_, {&value, 1}, next(), 2);
  third.wait();
  EXPECT_EQ(received, 1.5F);
}

// A receive that nobody waited for wrote into memory that was no longer its own.
TEST_F(PointToPointTest, a_receive_that_is_destroyed_or_replaced_takes_no_message) {
  float destroyed = 0;
  float replaced = 0;
  float received = 0;
  { const MessageRequest receiving = start_receive<float>(world_, {&destroyed, 1}, previous(), 2); }
  MessageRequest receiving = start_receive<float>(world_, {&replaced, 1}, previous(), 2);
  receiving = start_receive<float>(world_, {&received, 1}, previous(), 2);
  world_.barrier();
  const float value = 1.5F;
  send<float>(world_, {&value, 1}, next(), 2);
  receiving.wait();
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(replaced, 0);
  EXPECT_EQ(received, 1.5F);
}

TEST_F(PointToPointTest, a_send_that_is_destroyed_has_left_its_buffer) {
  if (world_.size() == 1) GTEST_SKIP() << "nobody else receives";
  if (world_.rank() == 0) {
    std::vector<float> sent = values_of<float>(0, large);
    { const MessageRequest sending = start_send<float>(world_, sent, 1, 2); }
    std::ranges::fill(sent, -1.0F);
  } else if (world_.rank() == 1) {
    std::this_thread::sleep_for(milliseconds(100));
    std::vector<float> received(large);
    receive<float>(world_, received, 0, 2);
    EXPECT_EQ(received, values_of<float>(0, large));
  }
}

// The failure of one rank would be told as a hang, if its unfinished messages held it up.
TEST_F(PointToPointTest, a_send_does_not_hold_up_an_exception) {
  if (world_.size() == 1) GTEST_SKIP() << "nobody else receives";
  const std::vector<float> sent = values_of<float>(0, large);
  if (world_.rank() == 0) {
    const auto start = std::chrono::steady_clock::now();
    try {
      const MessageRequest sending = start_send<float>(world_, sent, 1, 2);
      EXPECT_TRUE(sending.is_active());
      throw std::runtime_error("no");
    } catch (const std::runtime_error&) {
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    }
  }
  world_.barrier();
  if (world_.rank() == 1) {
    std::vector<float> received(large);
    receive<float>(world_, received, 0, 2);
    EXPECT_EQ(received, sent);
  }
  world_.barrier();  // the abandoned send has left its buffer
}

TEST_F(PointToPointTest, a_rank_that_waits_takes_no_core) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  world_.barrier();
  const double before = processor_seconds();
  if (world_.rank() == 0) {
    std::this_thread::sleep_for(milliseconds(600));
    const float value = 1;
    for (int rank = 1; rank < world_.size(); ++rank) send<float>(world_, {&value, 1}, rank, 2);
  } else {
    float value = 0;
    receive<float>(world_, {&value, 1}, 0, 2);
  }
  EXPECT_LT(processor_seconds() - before, 0.2);
}

}  // namespace lockstep::point_to_point_test
