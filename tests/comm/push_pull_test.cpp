// Pushes reach the servers' parts, answers carry their weights, and ages count what others have updated.
#include "comm/push_pull.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "comm/reducer_cases.hpp"

namespace lockstep::push_pull_test {

constexpr std::int64_t weight_count = 96;
constexpr std::int64_t statistic_count = 3;

class PushPullTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (servers_ >= world_.size()) GTEST_SKIP() << "no rank is left to train";
  }
  int trainers() const { return world_.size() - servers_; }
  // Two parts for each server.
  std::vector<std::vector<FlatPart>> parts() const {
    std::vector<std::vector<FlatPart>> all(static_cast<std::size_t>(world_.size()));
    for (int server = 0; server < servers_; ++server) {
      for (const std::int64_t half : {std::int64_t{0}, weight_count / 2}) {
        const SlicePart part = equal_part(weight_count / 2, servers_, server);
        if (part.count > 0)
          all[static_cast<std::size_t>(trainers()) + static_cast<std::size_t>(server)].push_back(
              {half + part.first, part.count});
      }
    }
    return all;
  }
  static Tensor tensor(std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return Tensor(reinterpret_cast<std::byte*>(values.data()), count * size_of(DType::f32), Shape{count}, DType::f32,
                  Layout::plain);
  }
  // A server that subtracts every gradient from its weights, and hands out 10, 11, ...
  void serve(PushPull& exchange, std::vector<Push>& pushes) {
    std::vector<float> gradients(weight_count);
    std::vector<float> statistics(statistic_count);
    int micro_batch = 10;
    while (const std::optional<Push> push = exchange.next()) {
      exchange.receive(*push, {tensor(gradients), tensor(statistics), {}});
      for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= gradients[i];
      if (exchange.is_first_server()) statistics_.push_back(statistics);
      exchange.answer(*push, {push->age, true, micro_batch++}, tensor(weights_));
      pushes.push_back(*push);
    }
  }
  PushAnswer push(PushPull& exchange, float gradient) {
    std::vector<float> gradients(weight_count, gradient);
    std::vector<float> statistics(statistic_count, 10 * gradient);
    return exchange.push(0.5 * static_cast<double>(gradient), {tensor(gradients), tensor(statistics), {}},
                         tensor(weights_));
  }

  Communicator world_ = world();
  int servers_ = GetParam();
  std::vector<float> weights_ = std::vector<float>(weight_count, 100);
  std::vector<std::vector<float>> statistics_;
};

// Trainers take turns: each pushes once more than the one before it.
TEST_P(PushPullTest, ages_are_counted_and_weights_come_back) {
  PushPull exchange(world_, parts());
  EXPECT_EQ(exchange.is_server(), world_.rank() >= trainers());
  for (int round = 0; round < 2; ++round) {
    world_.barrier();
    const float before = weights_.front();
    std::vector<Push> pushes;
    if (exchange.is_server()) {
      serve(exchange, pushes);
      std::int64_t updates = 0;
      std::size_t index = 0;
      for (int trainer = 0; trainer < trainers(); ++trainer) {
        for (int time = 0; time <= trainer; ++time, ++index) {
          ASSERT_LT(index, pushes.size());
          EXPECT_EQ(pushes[index].trainer, trainer);
          EXPECT_EQ(pushes[index].age, time == 0 ? updates : 0);
          EXPECT_EQ(pushes[index].learning_rate, 0.5 * (trainer + 1));
          if (exchange.is_first_server()) {
            EXPECT_EQ(statistics_[index], std::vector<float>(statistic_count, 10 * static_cast<float>(trainer + 1)));
          }
          ++updates;
        }
      }
      EXPECT_EQ(index, pushes.size());
      statistics_.clear();
      continue;
    }
    const int own = world_.rank();
    // The one before says when it is done.
    if (own > 0) receive<std::int32_t>(world_, {}, own - 1, 5);
    float expected = before;
    std::int64_t updates = 0;
    for (int trainer = 0; trainer < own; ++trainer) {
      expected -= static_cast<float>((trainer + 1) * (trainer + 1));
      updates += trainer + 1;
    }
    for (int time = 0; time <= own; ++time) {
      const PushAnswer answer = push(exchange, static_cast<float>(own + 1));
      expected -= static_cast<float>(own + 1);
      EXPECT_EQ(answer.age, time == 0 ? updates : 0);
      EXPECT_TRUE(answer.is_applied);
      EXPECT_EQ(answer.micro_batch, 10 + updates + time);
      EXPECT_EQ(weights_, std::vector<float>(weight_count, expected)) << "round " << round;
    }
    if (own + 1 < trainers()) send<std::int32_t>(world_, {}, own + 1, 5);
    exchange.leave();
    for (int trainer = own + 1; trainer < trainers(); ++trainer)
      expected -= static_cast<float>((trainer + 1) * (trainer + 1));
    weights_.assign(weight_count, expected);  // as all ranks have them at the end of a round
  }
}

// Dropped gradients are no updates.
TEST_P(PushPullTest, what_is_dropped_does_not_age_others) {
  PushPull exchange(world_, parts());
  if (!exchange.is_server()) {
    for (int time = 0; time < 3; ++time) {
      const PushAnswer answer = push(exchange, 1);
      EXPECT_FALSE(answer.is_applied);
      EXPECT_EQ(answer.age, 0);
      EXPECT_EQ(answer.micro_batch, std::nullopt);
    }
    return exchange.leave();
  }
  std::vector<float> gradients(weight_count);
  std::vector<float> statistics(statistic_count);
  int pushes = 0;
  while (const std::optional<Push> push = exchange.next()) {
    exchange.receive(*push, {tensor(gradients), tensor(statistics), {}});
    exchange.answer(*push, {push->age, false}, tensor(weights_));
    ++pushes;
  }
  EXPECT_EQ(pushes, 3 * trainers());
}

INSTANTIATE_TEST_SUITE_P(, PushPullTest, testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param) + "_servers"; });

}  // namespace lockstep::push_pull_test
