// A trainer's end of pushes to a server that is another program (remote_trainers.hpp), over sealed TCP.
//
//   RemoteServer server(...);                     connects
//   while (true) {
//     const RemoteWork work = server.ask(...);    waits for micro-batches
//     server.push(...);                           of each of them, and of those in the answers
//   }
//
// The calls throw TrainingEnded once the server has ended the training, or is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/net/handshake.hpp"
#include "comm/push_pull.hpp"
#include "comm/trainer_messages.hpp"

namespace lockstep {

// What the trainer ends with. what() is the reason; empty: the training is done.
class TrainingEnded : public std::runtime_error {
 public:
  TrainingEnded(int code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

struct RemoteWork {
  std::int64_t step = 0;
  std::vector<int> micro_batches;
};

// What a trainer waits for: the answer to a push, after which it may have micro-batches left, or anything else.
enum class TrainerWait : std::uint8_t { within_step, between_steps };
// With the seconds of this wait so far. May throw.
using WhileTrainerWaits = std::function<void(TrainerWait wait, double seconds)>;

class RemoteServer final : public TrainerEnd {
 public:
  // `connected`: after the handshake. `host`: where this trainer runs. `while_waiting` is called before each wait for
  // work, and several times a second in all waits. Nothing else limits the time for which the server may be busy.
  RemoteServer(std::unique_ptr<SealedSocket> connected, const std::string& host, WhileTrainerWaits while_waiting);

  // What the server offers to each trainer; waits for it.
  std::string offer();
  // Before the first work. The elements of the weights, and how many micro-batches a step has.
  void set_sizes(std::int64_t weights, std::int64_t micro_batches);

  // Waits until the server has work, and replaces `weights` by the server's if it has sent some, as it does for each
  // step. At least one micro-batch.
  RemoteWork ask(const Tensor& weights);
  PushAnswer push(double learning_rate, const PushedArrays& arrays, const Tensor& weights) override;
  // This trainer ends. Waits briefly until the server knows.
  void say_goodbye(const std::string& why);

 private:
  ReceivedMessage wait_for(TrainerMessage kind, TrainerWait wait);
  WorkHeader receive_work(const Tensor& weights, TrainerWait wait);
  void wait_for_event() const;

  SealedFrames frames_;
  WhileTrainerWaits while_waiting_;
  std::size_t weight_bytes_ = 0;
  std::int64_t micro_batches_ = 0;
  std::int64_t step_ = -1;  // whose weights this trainer has
};

}  // namespace lockstep
