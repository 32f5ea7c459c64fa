// Trainers over TCP that die, are silent or misbehave, and servers that end: every micro-batch is pushed once in spite
// of that.
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/served_trainers.hpp"
#include "comm/trainer_messages.hpp"
#include "support/messages.hpp"

namespace lockstep::remote_trainers_test {

using RemoteTrainerFaultsTest = ServedTrainers;

// A trainer that dies has two micro-batches that it did not push.
TEST_F(RemoteTrainerFaultsTest, others_get_what_a_dead_trainer_had) {
  std::jthread trainers([&] {
    std::vector<float> weights(weight_count);
    auto dying = joined();
    EXPECT_EQ(dying->ask(tensor(weights)).micro_batches.size(), 2U);
    dying.reset();
    const auto other = joined();
    train(*other);
  });
  expect_each_once(serve());
  EXPECT_EQ(server_.trainers(), 1);
  const std::vector<TrainerChange> changes = server_.take_changes();
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_TRUE(changes[0].why_left.empty());
  EXPECT_EQ(changes[0].number, 0);
  EXPECT_EQ(changes[0].host, "n1");
  EXPECT_EQ(changes[0].process, std::to_string(::getpid()));
  EXPECT_EQ(changes[0].trainers, 1);
  EXPECT_TRUE(changes[1].why_left.starts_with("has ended without a goodbye")) << changes[1].why_left;
  EXPECT_EQ(changes[1].number, 0);
  EXPECT_EQ(changes[1].trainers, 0);
  EXPECT_TRUE(changes[2].why_left.empty());
  EXPECT_EQ(changes[2].trainers, 1);
  EXPECT_TRUE(server_.take_changes().empty());
  server_.end(0, "");
}

// It waits for the rest of the round, and gets what the dead one had at once.
TEST_F(RemoteTrainerFaultsTest, a_trainer_that_is_done_takes_over_within_the_round) {
  std::jthread trainers([&] {
    std::vector<float> weights(weight_count);
    auto dying = joined();
    dying->ask(tensor(weights));
    std::jthread other([&] { train(*joined()); });
    while (served_ < micro_batches - 2) std::this_thread::sleep_for(1ms);
    dying.reset();
  });
  const std::vector<Served> served = serve();
  expect_each_once(served);
  EXPECT_EQ(served.back().gradient, 2);  // micro-batch 1
  server_.end(0, "");
}

class ImpatientServerTest : public ServedTrainers {
 protected:
  ImpatientServerTest() : ServedTrainers(1.5) {}
};

TEST_F(ImpatientServerTest, a_silent_trainer_is_named_and_others_go_on) {
  std::string reason;
  std::jthread trainers([&] {
    std::vector<float> weights(weight_count);
    const auto silent = joined();
    silent->ask(tensor(weights));
    std::jthread other([&] { train(*joined()); });
    try {
      silent->offer();  // waits, and sends nothing
    } catch (const TrainingEnded& end) {
      EXPECT_EQ(end.code(), static_cast<int>(Failure::out_of_step));
      reason = end.what();
    }
  });
  const Stopwatch watch;
  do {
    expect_each_once(serve());
  } while (server_.trainers() > 1 && watch.seconds() < 60);
  server_.end(0, "");
  trainers.join();
  EXPECT_TRUE(reason.starts_with("trainer 0 (process ")) << reason;
  EXPECT_TRUE(reason.ends_with("has sent nothing for 1.5 seconds (--hang-timeout).")) << reason;
}

// It is in the log and in what the trainer ends with.
TEST_F(ImpatientServerTest, a_name_has_a_limit) {
  std::string end;
  std::jthread trainer([&] {
    SealedFrames frames(connected(), 1 << 20);
    const std::string hello = R"({"host": ")" + std::string(4000, 'x') + R"(", "process": "1"})";
    send_message(frames, TrainerMessage::hello, bytes_of(hello));
    while (frames.state() == SealedSocket::State::open) {
      const std::optional<ReceivedMessage> message = receive_message(frames);
      if (message && message->kind == TrainerMessage::end) end = message->text();
      std::this_thread::sleep_for(1ms);
    }
  });
  expect_error(Failure::out_of_step, {"--hang-timeout"}, [&] { serve(); });
  trainer.join();
  EXPECT_NE(end.find("has sent nothing for 1.5 seconds"), std::string::npos);
  EXPECT_LT(end.size(), 300U);
}

TEST_F(ImpatientServerTest, a_server_without_trainers_gives_up) {
  expect_error(Failure::out_of_step, {"no trainer", "--hang-timeout", "--trainer-of"}, [&] { serve(); });
}

TEST_F(RemoteTrainerFaultsTest, trainers_end_with_the_code_and_the_reason_of_the_server) {
  std::jthread trainer([&] {
    const TrainingEnded end = train(*joined());
    EXPECT_EQ(end.code(), 75);
    EXPECT_STREQ(end.what(), "stopped after step 3");
  });
  serve();
  server_.end(75, "stopped after step 3");
}

TEST_F(RemoteTrainerFaultsTest, trainers_of_a_dead_server_say_so) {
  auto dying = std::make_unique<RemoteTrainers>(token_, 60);
  std::string reason;
  std::jthread trainer([port = dying->port(), &reason, this] {
    RemoteServer server(std::move(connect_to_node({"127.0.0.1"}, port, token_, 20s).value().socket), "n1",
                        [](TrainerWait, double) {});
    server.offer();
    server.set_sizes(weight_count, micro_batches);
    const TrainingEnded end = train(server);
    EXPECT_EQ(end.code(), static_cast<int>(Failure::out_of_step));
    reason = end.what();
  });
  dying->set_while_waiting([](int trainers) { require(trainers == 0, Failure::other, "killed"); });
  dying->begin_round(0, 1, tensor(weights_));
  EXPECT_THROW(dying->next(), Error);
  dying.reset();
  trainer.join();
  expect_message(reason, {"server"});
}

TEST_F(RemoteTrainerFaultsTest, a_trainer_that_misbehaves_is_cut_off_and_the_round_goes_on) {
  using Act = std::function<void(SealedFrames&)>;
  const auto say = [](TrainerMessage kind, std::size_t bytes) {
    return [kind, bytes](SealedFrames& frames) { send_message(frames, kind, std::vector<std::byte>(bytes)); };
  };
  const auto wait_for_work = [](SealedFrames& frames) {
    const Stopwatch watch;
    while (watch.seconds() < 10) {
      const std::optional<ReceivedMessage> message = receive_message(frames);
      if (message && message->kind == TrainerMessage::work) return;
      std::this_thread::sleep_for(1ms);
    }
  };
  const std::vector<Act> ways = {
      say(TrainerMessage::ready, 0),       // before it says who it is
      say(TrainerMessage::hello, 100000),  // a long name
      [&](SealedFrames& frames) {
        say(TrainerMessage::hello, 3)(frames);
        say(TrainerMessage::hello, 3)(frames);  // twice
      },
      [&](SealedFrames& frames) {
        say(TrainerMessage::hello, 3)(frames);
        say(TrainerMessage::push, 52)(frames);  // of no micro-batch
      },
      [&](SealedFrames& frames) {
        say(TrainerMessage::hello, 3)(frames);
        say(TrainerMessage::ready, 0)(frames);
        wait_for_work(frames);
        say(TrainerMessage::push, 51)(frames);  // of another length
      },
      [&](SealedFrames& frames) {
        say(TrainerMessage::hello, 3)(frames);
        say(TrainerMessage{77}, 3)(frames);
      },
  };
  std::jthread trainers([&] {
    for (const Act& misbehave : ways) {
      SealedFrames frames(connected(), 1 << 20);
      misbehave(frames);
      const Stopwatch watch;
      while (frames.state() == SealedSocket::State::open && watch.seconds() < 10) {
        frames.receive();
        std::this_thread::sleep_for(1ms);
      }
      EXPECT_NE(frames.state(), SealedSocket::State::open) << &misbehave - ways.data();
    }
    const auto honest = joined();
    train(*honest);
  });
  expect_each_once(serve());
  server_.end(0, "");
}

// The server would keep the answers.
TEST_F(RemoteTrainerFaultsTest, a_trainer_that_pushes_before_it_has_read_the_answer_is_cut_off) {
  weights_.resize(std::size_t{4} << 20U);  // more than TCP buffers
  server_.set_while_waiting([&](int count) { has_begun_ = has_begun_ || count > 0; });
  std::jthread trainers([&] {
    SealedFrames deaf(connected(), 1 << 20);
    send_message(deaf, TrainerMessage::hello, std::vector<std::byte>(3));
    send_message(deaf, TrainerMessage::ready);
    while (!has_begun_) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(300ms);
    send_message(deaf, TrainerMessage::push, std::vector<std::byte>(52));
    train(*joined());
  });
  float sum = 0;
  expect_each_once(serve(3, &sum));
  EXPECT_EQ(server_.trainers(), 1);
  server_.end(0, "");
}

// Nothing of what comes from there is used, whatever it is.
TEST_F(RemoteTrainerFaultsTest, who_does_not_know_the_token_is_no_trainer) {
  std::jthread trainers([&] {
    EXPECT_FALSE(connect_to_node({"127.0.0.1"}, server_.port(), draw_secret(), 300ms).has_value());
    const auto honest = joined();
    train(*honest);
  });
  const std::vector<Served> served = serve();
  expect_each_once(served);
  EXPECT_EQ(served.front().trainer, 0);
  server_.end(0, "");
}

}  // namespace lockstep::remote_trainers_test
