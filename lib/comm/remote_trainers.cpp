#include "comm/remote_trainers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "device/elements.hpp"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using State = SealedSocket::State;

constexpr auto look_every = 200ms;
constexpr std::size_t longest_name = 64;      // of a host or a process, in the log
constexpr std::size_t longest_reason = 1000;  // of a goodbye, likewise
constexpr double longest_look_seconds = 1;    // more than that was no time in which trainers could be heard
// A trainer is late if it takes this many times as long as usual, and at least so long.
constexpr double late_ratio = 2;
constexpr double least_late_seconds = 0.2;

const char* describe(State state) {
  switch (state) {
    case State::ended:
      return "has ended without a goodbye (killed, or its node is gone)";
    case State::forged:
      return "is cut off, because its connection carried a message that it did not send";
    case State::unreachable:
    case State::open:
      break;
  }
  return "can no longer be reached";
}

// Of a push.
double learning_rate_of(const ReceivedMessage& message) {
  double rate = 0;
  std::memcpy(&rate, message.body.data(), sizeof rate);
  return rate;
}

}  // namespace

RemoteTrainers::RemoteTrainers(std::string token, double patience_seconds)
    : token_(std::move(token)), door_(token_), patience_seconds_(patience_seconds) {}

RemoteTrainers::~RemoteTrainers() = default;

void RemoteTrainers::set_pushed_values(std::int64_t values) {
  pushed_bytes_ = sizeof(double) + static_cast<std::size_t>(values) * sizeof(float);
}

int RemoteTrainers::trainers() const {
  return static_cast<int>(std::ranges::count_if(trainers_, [](const auto& trainer) { return trainer->number >= 0; }));
}

void RemoteTrainers::begin_round(std::int64_t step, int micro_batches, const Tensor& weights) {
  ++round_;
  step_ = step;
  weights_ = weights;
  round_size_ = micro_batches;
  is_canceled_ = false;
  micro_batches_.clear();
  missing_.clear();
  for (int index = 0; index < micro_batches; ++index) {
    micro_batches_.push_back(index);
    missing_.insert(index);
  }
  since_look_ = {};
}

// Of the trainer's next push.
bool RemoteTrainers::is_missing(const Trainer& trainer) const {
  return trainer.round == round_ && missing_.contains(trainer.micro_batches.front());
}

std::optional<Push> RemoteTrainers::next() {
  const auto look_around = [this] {
    accept_trainers();
    count_silence();
    if (while_waiting_) while_waiting_(trainers());
  };
  while (!is_round_over()) {
    // Also if pushes never cease, so that trainers can join.
    if (since_look_.milliseconds() >= static_cast<double>(look_every.count())) look_around();
    const std::optional<Push> push = next_push();
    offer_work();
    if (push) return push;
    wait();
    look_around();
  }
  return std::nullopt;
}

// Begins with the trainer after the last one, so that a fast one does not keep the others from being heard.
std::optional<Push> RemoteTrainers::next_push() {
  std::optional<Push> push;
  const std::size_t count = trainers_.size();
  for (std::size_t i = 0; i < count && !push; ++i) {
    next_to_read_ = (next_to_read_ + 1) % count;
    push = read(*trainers_[next_to_read_]);
  }
  forget_lost();
  return push;
}

// Reads messages of the trainer until one is a push that counts.
std::optional<Push> RemoteTrainers::read(Trainer& trainer) {
  while (const std::optional<ReceivedMessage> message = receive_message(*trainer.frames)) {
    trainer.silent_seconds = 0;
    const bool has_read = message->kind == TrainerMessage::goodbye || !trainer.frames->has_unsent();
    const bool is_push = message->kind == TrainerMessage::push && !trainer.micro_batches.empty() &&
                         message->body.size() == pushed_bytes_ && std::isfinite(learning_rate_of(*message));
    if (!has_read || !(is_push || handle(trainer, *message))) {
      lose(trainer, "is cut off, because it sent what no trainer sends");
    }
    if (trainer.frames == nullptr) return std::nullopt;
    if (!is_push) continue;
    if (is_missing(trainer)) return take_push(trainer, *message);
    drop_push(trainer);
  }
  if (trainer.frames->state() != State::open) lose(trainer, describe(trainer.frames->state()));
  return std::nullopt;
}

Push RemoteTrainers::take_push(Trainer& trainer, const ReceivedMessage& message) {
  const double seconds = std::exchange(trainer.since_work, {}).seconds();
  usual_seconds_ = usual_seconds_ == 0 ? seconds : (usual_seconds_ + seconds) / 2;
  trainer.pushed = message.body.subspan(sizeof(double));
  return {trainer.number, weights_version() - trainer.weights, learning_rate_of(message)};
}

// Another trainer was first, or its round is over.
void RemoteTrainers::drop_push(Trainer& trainer) {
  trainer.micro_batches.pop_front();
  send_work(trainer, {}, 1, weights_);
}

// Of any message but a push. Whether a trainer sends it at this time.
bool RemoteTrainers::handle(Trainer& trainer, const ReceivedMessage& message) {
  if (message.kind == TrainerMessage::hello && trainer.number < 0) {
    admit(trainer, message.text());
    return true;
  }
  if (trainer.number < 0) return false;
  if (message.kind == TrainerMessage::ready && !trainer.is_ready && trainer.micro_batches.empty()) {
    trainer.is_ready = true;
    return true;
  }
  if (message.kind != TrainerMessage::goodbye || message.body.size() > longest_trainer_text) return false;
  lose(trainer, fmt::format("leaves: {}", printable(message.text().substr(0, longest_reason))));
  return true;
}

void RemoteTrainers::admit(Trainer& trainer, const std::string& hello) {
  const nlohmann::json said = try_parse_json(hello, 2);
  const auto field = [&](const char* name) {
    const bool is_there = said.is_object() && said.contains(name) && said[name].is_string();
    return printable(is_there ? said[name].get<std::string>().substr(0, longest_name) : "?");
  };
  int number = 0;
  while (std::ranges::any_of(trainers_, [&](const auto& other) { return other->number == number; })) ++number;
  trainer.number = number;
  trainer.host = field("host");
  trainer.process = field("process");
  trainer.name = fmt::format("trainer {} (process {} on {})", number, trainer.process, trainer.host);
  trainer.frames->set_longest_message(message_kind_bytes + std::max(pushed_bytes_, longest_trainer_text));
  send_message(*trainer.frames, TrainerMessage::offer, bytes_of(offer_));
  alone_seconds_ = 0;
  changes_.push_back({number, trainer.host, trainer.process, "", trainers()});
  log::info("{} has joined: {} now", trainer.name, counted(trainers(), "trainer"));
}

bool RemoteTrainers::is_late(const Trainer& trainer) const {
  const double limit = std::max(late_ratio * usual_seconds_, least_late_seconds);
  return usual_seconds_ > 0 && !trainer.micro_batches.empty() && trainer.since_work.seconds() > limit;
}

void RemoteTrainers::back_up_late_trainers() {
  const auto is_idle = [](const auto& trainer) { return trainer->is_ready; };
  if (!micro_batches_.empty() || std::ranges::none_of(trainers_, is_idle)) return;
  for (const auto& trainer : trainers_) {
    if (!is_late(*trainer) || give_back(*trainer) == 0 || std::exchange(trainer->was_called_slow, true)) continue;
    log::info("{} is slow. Trainers without work compute its last micro-batches as well.", trainer->name);
  }
}

void RemoteTrainers::offer_work() {
  back_up_late_trainers();
  // At first not more than an equal share. While one micro-batch is computed, the other one is loaded.
  const std::int64_t most =
      std::clamp<std::int64_t>(round_size_ / std::max(trainers(), 1), 1, WorkHeader::most_micro_batches);
  for (const auto& trainer : trainers_) {
    if (!trainer->is_ready || micro_batches_.empty()) continue;
    trainer->is_ready = false;
    trainer->round = round_;
    send_work(*trainer, {.is_applied = 1}, most, weights_);
  }
}

// With at most `most` micro-batches. A trainer that still has some of another round gets none.
void RemoteTrainers::send_work(Trainer& trainer, WorkHeader header, std::int64_t most, const Tensor& weights) {
  const bool is_of_round = trainer.round == round_ && !is_canceled_;
  header.step = step_;
  while (is_of_round && header.micro_batches < most && !micro_batches_.empty()) {
    const int micro_batch = micro_batches_.front();
    micro_batches_.pop_front();
    trainer.micro_batches.push_back(micro_batch);
    header.micro_batch.at(static_cast<std::size_t>(header.micro_batches++)) = micro_batch;
  }
  const bool needs_weights = is_of_round && !trainer.micro_batches.empty() && trainer.weights != weights_version();
  if (needs_weights) trainer.weights = weights_version();
  header.has_weights = needs_weights ? 1 : 0;
  trainer.is_backed_up = false;
  trainer.since_work = {};
  trainer.silent_seconds = 0;
  send_message(*trainer.frames, TrainerMessage::work, std::as_bytes(std::span(&header, 1)),
               needs_weights ? bytes_of(weights) : std::span<const std::byte>());
}

RemoteTrainers::Trainer& RemoteTrainers::by_number(int number) {
  const auto place = std::ranges::find_if(trainers_, [&](const auto& trainer) { return trainer->number == number; });
  assert(place != trainers_.end());
  return **place;
}

void RemoteTrainers::receive(const Push& push, const PushedArrays& arrays) {
  Trainer& trainer = by_number(push.trainer);
  for (const Tensor* const array : {&arrays.gradients, &arrays.statistics, &arrays.metrics}) {
    const std::span<float> values = elements(*array);
    assert(trainer.pushed.size() >= values.size_bytes());
    std::ranges::copy(trainer.pushed.first(values.size_bytes()), std::as_writable_bytes(values).begin());
    trainer.pushed = trainer.pushed.subspan(values.size_bytes());
  }
}

void RemoteTrainers::answer(const Push& push, const PushAnswer& answer, const Tensor& weights) {
  Trainer& trainer = by_number(push.trainer);
  const int micro_batch = trainer.micro_batches.front();
  trainer.micro_batches.pop_front();
  missing_.erase(micro_batch);
  std::erase(micro_batches_, micro_batch);  // if others were to get it as well
  if (answer.is_applied) ++updates_;
  send_work(trainer, {.age = answer.age, .is_applied = answer.is_applied ? 1 : 0}, 1, weights);
}

void RemoteTrainers::wait() {
  std::vector<pollfd> waits;
  for (const int handle : door_.handles()) waits.push_back({handle, POLLIN, 0});
  for (const auto& trainer : trainers_) {
    waits.push_back(
        {trainer->frames->handle(), static_cast<short>(trainer->frames->has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
  }
  ::poll(waits.data(), waits.size(), static_cast<int>(std::chrono::milliseconds(look_every).count()));
}

void RemoteTrainers::accept_trainers() {
  door_.serve(0ms);
  for (std::unique_ptr<SealedSocket>& socket : door_.take_all()) {
    auto frames = std::make_unique<SealedFrames>(std::move(socket), message_kind_bytes + longest_trainer_text);
    trainers_.push_back(std::make_unique<Trainer>());
    trainers_.back()->name = "a trainer that has not joined yet";
    trainers_.back()->frames = std::move(frames);
  }
}

// Only time in which trainers are heard counts, so that nobody is blamed for a server that was stopped.
void RemoteTrainers::count_silence() {
  const double seconds = std::min(since_look_.seconds(), longest_look_seconds);
  since_look_ = {};
  if (patience_seconds_ <= 0) return;
  alone_seconds_ = trainers() == 0 ? alone_seconds_ + seconds : 0;
  require(alone_seconds_ <= patience_seconds_, Failure::out_of_step,
          "no trainer has been there for {:g} seconds (--hang-timeout). Start trainers with --trainer-of. The same "
          "command resumes the training.",
          patience_seconds_);
  for (const auto& trainer : trainers_) {
    if (trainer->is_ready) continue;
    trainer->silent_seconds += seconds;
    if (trainer->silent_seconds <= patience_seconds_) continue;
    const std::string why = fmt::format("has sent nothing for {:g} seconds (--hang-timeout)", patience_seconds_);
    const std::string end = json_text(
        {{"code", static_cast<int>(Failure::out_of_step)}, {"sentence", fmt::format("{} {}.", trainer->name, why)}});
    send_message(*trainer->frames, TrainerMessage::end, bytes_of(end));
    lose(*trainer, why);
  }
  forget_lost();
}

// Closes the connection. forget_lost() follows.
void RemoteTrainers::lose(Trainer& trainer, const std::string& why) {
  const std::size_t unfinished = is_round_over() ? 0 : give_back(trainer);
  trainer.frames.reset();
  const int number = std::exchange(trainer.number, -1);
  const std::string reason = why.ends_with('.') ? why.substr(0, why.size() - 1) : why;
  if (number < 0) return log::warning("{} {}.", trainer.name, reason);
  changes_.push_back({number, trainer.host, trainer.process, reason, trainers()});
  const std::string work = unfinished == 0 || trainers() == 0
                               ? ""
                               : fmt::format("Others get its {}. ",
                                             counted(unfinished, "unfinished micro-batch", "unfinished micro-batches"));
  const std::string limit =
      patience_seconds_ > 0 ? fmt::format(" for at most {:g} seconds (--hang-timeout)", patience_seconds_) : "";
  const std::string left = trainers() == 0   ? fmt::format("No trainer is left; the server waits for one{}", limit)
                           : trainers() == 1 ? "1 trainer is left"
                                             : fmt::format("{} trainers are left", trainers());
  log::warning("{} {}. {}{}.", trainer.name, reason, work, left);
}

// Others get the trainer's micro-batches, before all others and in its order, unless they do already. How many.
std::size_t RemoteTrainers::give_back(Trainer& trainer) {
  if (trainer.round != round_ || std::exchange(trainer.is_backed_up, true)) return 0;
  std::vector<int> wanted;
  std::ranges::copy_if(trainer.micro_batches, std::back_inserter(wanted), [this](int micro_batch) {
    return missing_.contains(micro_batch) && std::ranges::find(micro_batches_, micro_batch) == micro_batches_.end();
  });
  micro_batches_.insert(micro_batches_.begin(), wanted.begin(), wanted.end());
  return wanted.size();
}

void RemoteTrainers::forget_lost() {
  std::erase_if(trainers_, [](const auto& trainer) { return trainer->frames == nullptr; });
}

void RemoteTrainers::end(int code, const std::string& sentence) {
  constexpr double patience_seconds = 2;
  const std::string text = json_text({{"code", code}, {"sentence", sentence.substr(0, longest_trainer_text / 2)}});
  for (const auto& trainer : trainers_) send_message(*trainer->frames, TrainerMessage::end, bytes_of(text));
  const Stopwatch watch;
  const auto is_sent = [](const auto& trainer) {
    while (receive_message(*trainer->frames)) continue;
    return !trainer->frames->has_unsent() || trainer->frames->state() != State::open;
  };
  while (!std::ranges::all_of(trainers_, is_sent) && watch.seconds() < patience_seconds) wait();
  trainers_.clear();
}

}  // namespace lockstep
