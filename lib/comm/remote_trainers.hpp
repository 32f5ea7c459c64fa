// The server's end of pushes from trainers that are programs of their own, over sealed TCP (base/net/sealed_frames).
// Trainers come and go at any time:
//
//   begin_round()   a list of micro-batches, which trainers take whenever they are ready
//   next()          the next push; admits trainers meanwhile
//   end()           the trainers' programs end
//
// A trainer that dies, is silent for too long, or sends what no trainer sends, is named in the log, and its unfinished
// micro-batches return to the list. So each micro-batch of a round is pushed exactly once. A connection that cannot
// prove that it belongs to the job does not get that far (base/net/handshake).
//
// Everything happens on the calling thread. Between rounds, trainers wait.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/net/handshake.hpp"
#include "comm/push_pull.hpp"
#include "comm/trainer_messages.hpp"

namespace lockstep {

class RemoteTrainers final : public ServerEnd {
 public:
  // Listens from here on. `patience_seconds`: of a trainer's silence while it has micro-batches, and without any
  // trainer; 0: unlimited.
  RemoteTrainers(std::string token, double patience_seconds);
  RemoteTrainers(const RemoteTrainers&) = delete;
  RemoteTrainers& operator=(const RemoteTrainers&) = delete;
  ~RemoteTrainers() override;

  bool is_open() const { return door_.is_open(); }
  int port() const { return door_.port(); }
  const std::string& token() const { return token_; }

  // Before the first round. What each trainer gets when it joins.
  void set_offer(std::string offer) { offer_ = std::move(offer); }
  // Before the first round. The number of values that a push carries.
  void set_pushed_values(std::int64_t values);
  // Called several times a second while next() waits, with the number of trainers. May throw, which ends next().
  void set_while_waiting(std::function<void(int trainers)> act) { while_waiting_ = std::move(act); }

  // Micro-batches are 0 to `micro_batches` - 1 of `step`. `weights` are those that trainers get which begin.
  void begin_round(std::int64_t step, int micro_batches, const Tensor& weights);
  // The round ends with the pushes that have arrived.
  void cancel_round() { is_canceled_ = true; }

  // A round is over if all of its micro-batches were answered. Push::trainer is the lowest number that was free when
  // the trainer joined. Throws Error(out_of_step) if no trainer is there for too long.
  std::optional<Push> next() override;
  void receive(const Push& push, const PushedArrays& arrays) override;
  // Adds the trainer's next micro-batch.
  void answer(const Push& push, const PushAnswer& answer, const Tensor& weights) override;

  // All trainers end with this code and sentence. Waits briefly until they have it.
  void end(int code, const std::string& sentence);
  int trainers() const;  // that have joined and are still there

 private:
  struct Trainer {
    int number = -1;   // -1: it has not said who it is
    std::string name;  // "trainer 0 (process 4711 on n1)"
    std::unique_ptr<SealedFrames> frames;
    bool is_ready = false;
    std::deque<int> micro_batches = {};      // that it has, the oldest one first
    std::int64_t answered_at = 0;            // the updates at the last answer
    double silent_seconds = 0;               // while a message was due
    std::span<const std::byte> pushed = {};  // the push that next() has returned
  };

  bool is_round_over() const;
  std::optional<Push> take_push();
  std::optional<Push> read(Trainer& trainer);
  bool handle(Trainer& trainer, const ReceivedMessage& message);
  void admit(Trainer& trainer, const std::string& hello);
  void offer_work();
  void send_work(Trainer& trainer, WorkHeader header, std::int64_t most, const Tensor& weights);
  void wait();
  void count_silence();
  void accept_trainers();
  void lose(Trainer& trainer, const std::string& why);
  void give_back(Trainer& trainer);
  void forget_lost();
  Trainer& by_number(int number);

  std::string token_;
  HandshakeServer door_;
  double patience_seconds_;
  std::string offer_;
  std::size_t pushed_bytes_ = 0;
  std::function<void(int)> while_waiting_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::size_t next_to_read_ = 0;
  std::int64_t step_ = 0;
  Tensor weights_;
  std::deque<int> micro_batches_;  // of the round, that no trainer has
  int unanswered_ = 0;             // micro-batches of the round
  bool is_canceled_ = false;
  std::int64_t updates_ = 0;
  Stopwatch since_look_;  // at silence
  double alone_seconds_ = 0;
};

}  // namespace lockstep
