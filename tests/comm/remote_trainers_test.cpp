// How a server shares micro-batches among trainers over TCP: every one is pushed once.
#include "comm/remote_trainers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "comm/served_trainers.hpp"

namespace lockstep::remote_trainers_test {

using RemoteTrainersTest = ServedTrainers;

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

}  // namespace lockstep::remote_trainers_test
