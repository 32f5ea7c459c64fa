#include "comm/push_pull.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <span>
#include <utility>

#include "device/elements.hpp"

namespace lockstep {
namespace {

constexpr int request_tag = 0;  // the learning rate, before the arrays of a push; nothing from a trainer that leaves
constexpr int values_tag = 1;   // arrays, part by part
constexpr int answer_tag = 2;   // a PushAnswer, before the weights

constexpr double no_micro_batch = -1;
using AnswerMessage = std::array<double, 3>;

std::span<float> elements(const Tensor& values, const FlatPart& part) {
  return elements(values).subspan(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.count));
}

}  // namespace

PushPull::PushPull(const Communicator& world, std::vector<std::vector<FlatPart>> parts)
    : world_(world.split(0, world.rank())), parts_(std::move(parts)) {
  const auto first = std::ranges::find_if(parts_, [](const auto& of_rank) { return !of_rank.empty(); });
  trainers_ = static_cast<int>(first - parts_.begin());
  assert(trainers_ >= 1 && std::ssize(parts_) == world_.size() && trainers_ < world_.size());
  answered_at_.resize(static_cast<std::size_t>(trainers_));
}

PushAnswer PushPull::push(double learning_rate, const PushedArrays& arrays, const Tensor& weights) {
  std::vector<AnswerMessage> answers(static_cast<std::size_t>(world_.size() - trainers_));
  for (int server = trainers_; server < world_.size(); ++server) {
    requests_.push_back(start_send<double>(world_, {&learning_rate, 1}, server, request_tag));
    const std::vector<FlatPart>& parts = parts_[static_cast<std::size_t>(server)];
    for (const FlatPart& part : parts) {
      requests_.push_back(start_send<float>(world_, elements(arrays.gradients, part), server, values_tag));
    }
    if (server == trainers_) {
      requests_.push_back(start_send<float>(world_, elements(arrays.statistics), server, values_tag));
    }
    AnswerMessage& answer = answers[static_cast<std::size_t>(server - trainers_)];
    requests_.push_back(start_receive<double>(world_, answer, server, answer_tag));
    for (const FlatPart& part : parts) {
      requests_.push_back(start_receive<float>(world_, elements(weights, part), server, values_tag));
    }
  }
  wait_all(requests_);
  requests_.clear();
  const auto& [age, is_applied, micro_batch] = answers.front();
  PushAnswer answer{static_cast<std::int64_t>(age), is_applied != 0};
  if (micro_batch != no_micro_batch) answer.micro_batch = static_cast<int>(micro_batch);
  return answer;
}

void PushPull::leave() {
  for (int server = trainers_; server < world_.size(); ++server) send<double>(world_, {}, server, request_tag);
}

std::optional<Push> PushPull::next() {
  while (left_ < trainers_) {
    double learning_rate = 0;
    const MessageInfo request = lockstep::receive<double>(world_, {&learning_rate, 1}, any_source, request_tag);
    const auto trainer = static_cast<std::size_t>(request.peer);
    if (request.count<double>() == 1) return Push{request.peer, updates_ - answered_at_[trainer], learning_rate};
    ++left_;
  }
  left_ = 0;
  std::ranges::fill(answered_at_, updates_);  // all trainers get the weights before the next round
  return std::nullopt;
}

void PushPull::receive(const Push& push, const PushedArrays& arrays) {
  for (const FlatPart& part : parts_[static_cast<std::size_t>(world_.rank())]) {
    lockstep::receive<float>(world_, elements(arrays.gradients, part), push.trainer, values_tag);
  }
  if (is_first_server()) lockstep::receive<float>(world_, elements(arrays.statistics), push.trainer, values_tag);
}

void PushPull::answer(const Push& push, const PushAnswer& answer, const Tensor& weights) {
  if (answer.is_applied) ++updates_;
  answered_at_[static_cast<std::size_t>(push.trainer)] = updates_;
  const AnswerMessage message = {static_cast<double>(answer.age), answer.is_applied ? 1.0 : 0.0,
                                 answer.micro_batch ? *answer.micro_batch : no_micro_batch};
  requests_.push_back(start_send<double>(world_, message, push.trainer, answer_tag));
  for (const FlatPart& part : parts_[static_cast<std::size_t>(world_.rank())]) {
    requests_.push_back(start_send<float>(world_, elements(weights, part), push.trainer, values_tag));
  }
  wait_all(requests_);
  requests_.clear();
}

}  // namespace lockstep
