// A server, and trainers that a test runs in threads, which speak to it over TCP.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/net/link_seal.hpp"
#include "comm/remote_server.hpp"
#include "comm/remote_trainers.hpp"

namespace lockstep::remote_trainers_test {

using namespace std::chrono_literals;

inline constexpr std::int64_t weight_count = 6;
inline constexpr std::int64_t statistic_count = 2;
inline constexpr std::int64_t metric_count = 3;
inline constexpr int micro_batches = 8;

inline Tensor tensor(std::vector<float>& values) {
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

class ServedTrainers : public testing::Test {
 protected:
  explicit ServedTrainers(double patience_seconds = 60) : server_(token_, patience_seconds) {
    server_.set_pushed_values(weight_count + statistic_count + metric_count);
    server_.set_offer("what is trained");
  }
  ~ServedTrainers() override { server_.end(0, ""); }

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

}  // namespace lockstep::remote_trainers_test
