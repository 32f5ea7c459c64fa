// A server, and trainers in threads that speak to it over TCP. Every micro-batch is pushed once, also if trainers die
// or are silent.
#include "comm/remote_trainers.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/net/link_seal.hpp"
#include "comm/remote_server.hpp"
#include "support/messages.hpp"

namespace lockstep::remote_trainers_test {

using namespace std::chrono_literals;

constexpr std::int64_t weight_count = 6;
constexpr std::int64_t statistic_count = 2;
constexpr std::int64_t metric_count = 3;
constexpr int micro_batches = 8;

Tensor tensor(std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {reinterpret_cast<std::byte*>(values.data()), count * size_of(DType::f32), Shape{count}, DType::f32,
          Layout::plain};
}

struct Served {
  int trainer;
  std::int64_t age;
  double learning_rate;
  float gradient;
  float metric;
};

class RemoteTrainersTest : public testing::Test {
 protected:
  explicit RemoteTrainersTest(double patience_seconds = 60) : server_(token_, patience_seconds) {
    server_.set_pushed_values(weight_count + statistic_count + metric_count);
    server_.set_offer("what is trained");
  }
  ~RemoteTrainersTest() override { server_.end(0, ""); }

  std::unique_ptr<SealedSocket> connected() const {
    return std::move(connect_to_node({"127.0.0.1"}, server_.port(), token_, 20s).value().socket);
  }
  std::unique_ptr<RemoteServer> joined() const {
    auto server = std::make_unique<RemoteServer>(connected(), "n1", [](TrainerWait, double) {});
    EXPECT_EQ(server->offer(), "what is trained");
    server->set_sizes(std::ssize(weights_), micro_batches);
    return server;
  }
  // The gradient of micro-batch m is m + 1.
  static PushAnswer push(RemoteServer& server, int micro_batch, std::vector<float>& weights, double rate = 0) {
    const auto value = static_cast<float>(micro_batch + 1);
    std::vector<float> gradients(weight_count, value);
    std::vector<float> statistics(statistic_count, 10 * value);
    std::vector<float> metrics(metric_count, 100 * value);
    return server.push(rate, {tensor(gradients), tensor(statistics), tensor(metrics)}, tensor(weights));
  }
  // Until the trainer has no micro-batch.
  static void push_all(RemoteServer& server, const RemoteWork& work, std::vector<float>& weights) {
    std::deque<int> available(work.micro_batches.begin(), work.micro_batches.end());
    while (!available.empty()) {
      const PushAnswer answer = push(server, available.front(), weights, 0.5 * static_cast<double>(work.step));
      available.pop_front();
      if (answer.micro_batch) available.push_back(*answer.micro_batch);
      std::this_thread::sleep_for(1ms);
    }
  }
  // Pushes until the server ends it, which it returns.
  TrainingEnded train(RemoteServer& server) const {
    std::vector<float> weights(weights_.size());
    try {
      while (true) push_all(server, server.ask(tensor(weights)), weights);
    } catch (const TrainingEnded& end) {
      return end;
    }
  }
  // A round in which each gradient is subtracted from the weights, or, if `sums` is set, added to it.
  std::vector<Served> serve(std::int64_t step = 3, float* sums = nullptr) {
    std::vector<Served> served;
    server_.begin_round(step, micro_batches, tensor(weights_));
    while (const std::optional<Push> push = server_.next()) {
      std::vector<float> gradients(weight_count);
      std::vector<float> statistics(statistic_count);
      std::vector<float> metrics(metric_count);
      server_.receive(*push, {tensor(gradients), tensor(statistics), tensor(metrics)});
      for (std::size_t i = 0; i < gradients.size() && sums == nullptr; ++i) weights_[i] -= gradients[i];
      if (sums != nullptr) *sums += gradients.front();
      EXPECT_EQ(statistics, std::vector<float>(statistic_count, 10 * gradients.front()));
      ++served_;
      served.push_back({push->trainer, push->age, push->learning_rate, gradients.back(), metrics.back()});
      server_.answer(*push, {push->age, sums == nullptr}, tensor(weights_));
    }
    return served;
  }
  void expect_each_once(const std::vector<Served>& served) const {
    std::multiset<float> gradients;
    for (const Served& one : served) gradients.insert(one.gradient);
    std::multiset<float> expected;
    for (int index = 0; index < micro_batches; ++index) expected.insert(static_cast<float>(index + 1));
    EXPECT_EQ(gradients, expected);
  }

  const std::string token_ = draw_secret();
  RemoteTrainers server_;
  std::atomic<int> served_ = 0;  // pushes
  std::atomic<bool> has_begun_ = false;
  std::vector<float> weights_ = std::vector<float>(weight_count, 100);
};

TEST_F(RemoteTrainersTest, a_single_trainer_pushes_all_in_order_and_gets_the_weights) {
  std::vector<float> weights(weight_count);
  std::jthread trainer([&] {
    const auto server = joined();
    EXPECT_EQ(train(*server).code(), 0);
  });
  for (const std::int64_t step : {3, 4}) {
    const std::vector<Served> served = serve(step);
    ASSERT_EQ(served.size(), micro_batches);
    for (std::size_t index = 0; index < served.size(); ++index) {
      EXPECT_EQ(served[index].gradient, static_cast<float>(index + 1));
      EXPECT_EQ(served[index].metric, 100 * static_cast<float>(index + 1));
      EXPECT_EQ(served[index].learning_rate, 0.5 * static_cast<double>(step));
      EXPECT_EQ(served[index].trainer, 0);
      EXPECT_EQ(served[index].age, 0);
    }
  }
  server_.end(0, "");
}

TEST_F(RemoteTrainersTest, a_trainer_has_the_weights_after_its_own_push) {
  std::jthread trainer([&] {
    const auto server = joined();
    std::vector<float> weights(weight_count);
    const RemoteWork work = server->ask(tensor(weights));
    EXPECT_EQ(work.step, 3);
    EXPECT_EQ(work.micro_batches, (std::vector<int>{0, 1}));
    EXPECT_EQ(weights, std::vector<float>(weight_count, 100));
    const PushAnswer answer = push(*server, 0, weights);
    EXPECT_EQ(weights, std::vector<float>(weight_count, 99));
    EXPECT_EQ(answer.micro_batch, 2);
    EXPECT_TRUE(answer.is_applied);
    server->say_goodbye("enough");
    const auto other = joined();
    train(*other);
  });
  EXPECT_EQ(serve().size(), micro_batches);
  server_.end(0, "");
}

// As if all of them were one update, after the round.
TEST_F(RemoteTrainersTest, weights_that_no_push_changes_are_sent_once_per_round) {
  std::jthread trainer([&] {
    const auto server = joined();
    const std::vector<float> untouched(weight_count, -1);
    for (const float expected : {100.0F, 64.0F}) {
      std::vector<float> weights = untouched;
      const RemoteWork work = server->ask(tensor(weights));
      EXPECT_EQ(weights, std::vector<float>(weight_count, expected));
      weights = untouched;
      push_all(*server, work, weights);
      EXPECT_EQ(weights, untouched);
    }
    EXPECT_EQ(train(*server).code(), 0);
  });
  for (const std::int64_t step : {3, 4}) {
    float sum = 0;
    const std::vector<Served> served = serve(step, &sum);
    expect_each_once(served);
    EXPECT_TRUE(std::ranges::all_of(served, [](const Served& one) { return one.age == 0; }));
    EXPECT_EQ(sum, 36);
    std::ranges::fill(weights_, 100 - sum);
  }
  server_.end(0, "");
}

// Not more, although only one asks.
TEST_F(RemoteTrainersTest, at_first_a_trainer_gets_an_equal_share) {
  std::jthread trainers([&] {
    std::vector<std::unique_ptr<RemoteServer>> all;
    for (int index = 0; index < micro_batches; ++index) all.push_back(joined());
    while (!has_begun_) std::this_thread::sleep_for(1ms);
    std::vector<float> weights(weight_count);
    const RemoteWork work = all.back()->ask(tensor(weights));
    EXPECT_EQ(work.micro_batches.size(), 1U);
    push_all(*all.back(), work, weights);
  });
  server_.set_while_waiting([&](int count) {
    if (count == micro_batches) server_.cancel_round();
  });
  serve();  // until all have joined
  server_.set_while_waiting({});
  has_begun_ = true;
  expect_each_once(serve());
}

TEST_F(RemoteTrainersTest, several_trainers_share_the_micro_batches_and_ages_count_the_updates_of_others) {
  std::vector<std::jthread> trainers;
  for (int index = 0; index < 3; ++index) {
    trainers.emplace_back([&] {
      const auto server = joined();
      train(*server);
    });
  }
  const Stopwatch watch;
  for (std::int64_t step = 0; step < 3 || (server_.trainers() < 3 && watch.seconds() < 60); ++step) {
    const std::vector<Served> served = serve(step);
    expect_each_once(served);
    EXPECT_TRUE(
        std::ranges::all_of(served, [](const Served& one) { return one.trainer < 3 && one.age < micro_batches; }));
  }
  EXPECT_EQ(server_.trainers(), 3);
  server_.end(0, "");
}

// A trainer that dies has two micro-batches that it did not push.
TEST_F(RemoteTrainersTest, others_get_what_a_dead_trainer_had) {
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
TEST_F(RemoteTrainersTest, a_trainer_that_is_done_takes_over_within_the_round) {
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

// Of two trainers with the same micro-batch, the one that pushes first counts.
TEST_F(RemoteTrainersTest, an_idle_trainer_also_gets_the_micro_batches_of_a_slow_one) {
  std::jthread trainers([&] {
    std::vector<float> weights(weight_count);
    const auto slow = joined();
    EXPECT_EQ(slow->ask(tensor(weights)).micro_batches, (std::vector<int>{0, 1}));
    const auto other = joined();
    push_all(*other, other->ask(tensor(weights)), weights);
    EXPECT_EQ(other->ask(tensor(weights)).micro_batches, (std::vector<int>{0, 1}));
    push(*other, 0, weights);
    EXPECT_FALSE(push(*slow, 0, weights).is_applied);
    push(*slow, 1, weights);
    EXPECT_THROW(push(*other, 1, weights), TrainingEnded);
  });
  const std::vector<Served> served = serve();
  expect_each_once(served);
  EXPECT_EQ(served[micro_batches - 2].gradient, 1);
  EXPECT_EQ(served[micro_batches - 2].trainer, 1);
  EXPECT_EQ(served[micro_batches - 1].trainer, 0);
  server_.end(0, "");
}

TEST_F(RemoteTrainersTest, what_a_slow_trainer_pushes_in_a_later_round_counts_nothing) {
  std::jthread trainers([&] {
    std::vector<float> weights(weight_count);
    const auto slow = joined();
    const RemoteWork work = slow->ask(tensor(weights));
    std::jthread other([&] { train(*joined()); });
    while (served_ < micro_batches) std::this_thread::sleep_for(1ms);
    for (const int micro_batch : work.micro_batches) EXPECT_FALSE(push(*slow, micro_batch, weights).micro_batch);
    train(*slow);
  });
  const Stopwatch watch;
  bool has_slow_one = false;
  for (std::int64_t step = 1; !has_slow_one && watch.seconds() < 60; ++step) {
    const std::vector<Served> served = serve(step);
    expect_each_once(served);
    has_slow_one = std::ranges::count(served, 0, &Served::trainer) > 0;
    for (const Served& one : served) EXPECT_EQ(one.learning_rate, 0.5 * static_cast<double>(step));
  }
  EXPECT_TRUE(has_slow_one);
  server_.end(0, "");
}

class ImpatientServerTest : public RemoteTrainersTest {
 protected:
  ImpatientServerTest() : RemoteTrainersTest(1.5) {}
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

TEST_F(RemoteTrainersTest, trainers_end_with_the_code_and_the_reason_of_the_server) {
  std::jthread trainer([&] {
    const TrainingEnded end = train(*joined());
    EXPECT_EQ(end.code(), 75);
    EXPECT_STREQ(end.what(), "stopped after step 3");
  });
  serve();
  server_.end(75, "stopped after step 3");
}

TEST_F(RemoteTrainersTest, trainers_of_a_dead_server_say_so) {
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

TEST_F(RemoteTrainersTest, a_trainer_that_misbehaves_is_cut_off_and_the_round_goes_on) {
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
TEST_F(RemoteTrainersTest, a_trainer_that_pushes_before_it_has_read_the_answer_is_cut_off) {
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
TEST_F(RemoteTrainersTest, who_does_not_know_the_token_is_no_trainer) {
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
