#include "comm/remote_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "device/elements.hpp"

namespace lockstep {
namespace {

using State = SealedSocket::State;

constexpr int lost = static_cast<int>(Failure::out_of_step);

[[noreturn]] void refuse_message() {
  throw TrainingEnded(lost, "the server has sent what no server sends. Start both from the same installation.");
}

TrainingEnded end_of(const std::string& text) {
  const nlohmann::json said = try_parse_json(text, 2);
  const bool is_whole = said.is_object() && said.contains("code") && said["code"].is_number_integer() &&
                        said.contains("sentence") && said["sentence"].is_string();
  if (!is_whole) refuse_message();
  return {std::clamp(said["code"].get<int>(), 0, 255), said["sentence"].get<std::string>()};
}

}  // namespace

RemoteServer::RemoteServer(std::unique_ptr<SealedSocket> connected, const std::string& host,
                           WhileTrainerWaits while_waiting)
    : frames_(std::move(connected), message_kind_bytes + longest_offer), while_waiting_(std::move(while_waiting)) {
  frames_.wait_for_busy_peer();
  const std::string hello = json_text({{"host", host}, {"process", std::to_string(::getpid())}});
  send_message(frames_, TrainerMessage::hello, bytes_of(hello));
}

std::string RemoteServer::offer() { return wait_for(TrainerMessage::offer, TrainerWait::between_steps).text(); }

void RemoteServer::set_sizes(std::int64_t weights, std::int64_t micro_batches) {
  weight_bytes_ = static_cast<std::size_t>(weights) * sizeof(float);
  micro_batches_ = micro_batches;
  frames_.set_longest_message(message_kind_bytes + std::max(sizeof(WorkHeader) + weight_bytes_, longest_trainer_text));
}

RemoteWork RemoteServer::ask(const Tensor& weights) {
  while_waiting_(TrainerWait::between_steps, 0);
  send_message(frames_, TrainerMessage::ready);
  const WorkHeader header = receive_work(weights, TrainerWait::between_steps);
  if (header.micro_batches == 0 || (header.has_weights == 0 && header.step != step_)) refuse_message();
  step_ = header.step;
  RemoteWork work{header.step, {}};
  for (std::size_t index = 0; index < static_cast<std::size_t>(header.micro_batches); ++index) {
    work.micro_batches.push_back(static_cast<int>(header.micro_batch.at(index)));
  }
  return work;
}

PushAnswer RemoteServer::push(double learning_rate, const PushedArrays& arrays, const Tensor& weights) {
  send_message(frames_, TrainerMessage::push, std::as_bytes(std::span(&learning_rate, 1)), bytes_of(arrays.gradients),
               bytes_of(arrays.statistics), bytes_of(arrays.metrics));
  const WorkHeader header = receive_work(weights, TrainerWait::within_step);
  PushAnswer answer{header.age, header.is_applied != 0};
  if (header.micro_batches > 1) refuse_message();
  if (header.micro_batches == 1) answer.micro_batch = static_cast<int>(header.micro_batch.front());
  return answer;
}

// Waits until the server has closed the connection: what is closed with unread messages may lose those on their way.
void RemoteServer::say_goodbye(const std::string& why) {
  constexpr double patience_seconds = 2;
  send_message(frames_, TrainerMessage::goodbye, bytes_of(why.substr(0, longest_trainer_text / 2)));
  const Stopwatch watch;
  while (frames_.state() == State::open && watch.seconds() < patience_seconds) {
    if (!frames_.receive()) wait_for_event();
  }
}

void RemoteServer::wait_for_event() const {
  constexpr int look_every_ms = 200;
  pollfd wait{frames_.handle(), static_cast<short>(frames_.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0};
  ::poll(&wait, 1, look_every_ms);
}

WorkHeader RemoteServer::receive_work(const Tensor& weights, TrainerWait wait) {
  const ReceivedMessage message = wait_for(TrainerMessage::work, wait);
  WorkHeader header;
  if (message.body.size() < sizeof header) refuse_message();
  std::memcpy(&header, message.body.data(), sizeof header);
  const std::span<const std::byte> sent = message.body.subspan(sizeof header);
  const std::span<float> values = elements(weights);
  assert(values.size_bytes() == weight_bytes_);
  const auto is_of_step = [this](std::int64_t micro_batch) { return micro_batch >= 0 && micro_batch < micro_batches_; };
  const bool is_possible = sent.size() == (header.has_weights == 0 ? 0 : weight_bytes_) && header.step >= 0 &&
                           header.age >= 0 && header.micro_batches >= 0 &&
                           header.micro_batches <= WorkHeader::most_micro_batches &&
                           std::ranges::all_of(header.micro_batch, is_of_step);
  if (!is_possible) refuse_message();
  std::memcpy(values.data(), sent.data(), sent.size());
  return header;
}

ReceivedMessage RemoteServer::wait_for(TrainerMessage kind, TrainerWait wait) {
  const Stopwatch watch;
  while (true) {
    if (const std::optional<ReceivedMessage> message = receive_message(frames_)) {
      if (message->kind == TrainerMessage::end && message->body.size() <= longest_trainer_text) {
        throw end_of(message->text());
      }
      if (message->kind != kind) refuse_message();
      return *message;
    }
    if (frames_.state() == State::forged) {
      throw TrainingEnded(lost,
                          "the connection to the server carried a message that the server did not send. Use a network "
                          "that others cannot reach.");
    }
    if (frames_.state() != State::open) {
      throw TrainingEnded(lost, "the server has ended without a reason. Its own log may have one.");
    }
    while_waiting_(wait, watch.seconds());
    wait_for_event();
  }
}

}  // namespace lockstep
