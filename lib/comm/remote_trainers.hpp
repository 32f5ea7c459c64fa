// The server's end of pushes from trainers that are programs of their own, over sealed TCP (base/net/sealed_frames).
// Trainers come and go at any time:
//
//   begin_round()   a list of micro-batches, which trainers take whenever they are ready
//   next()          the next push; admits trainers meanwhile
//   end()           the trainers' programs end
//
// A trainer that dies, is silent for too long, or sends what no trainer sends, is named in the log, and its unfinished
// micro-batches return to the list. A connection that cannot prove that it belongs to the job does not get that far
// (base/net/handshake).
//
// The end of a round waits for its last micro-batches. So if a trainer takes much longer than usual, one that has no
// others gets its micro-batches as well (backup tasks: Dean and Ghemawat 2004, "MapReduce"). The first push of a
// micro-batch counts. Later ones are dropped here, also in later rounds, so next() returns each micro-batch once.
//
// Everything happens on the calling thread. Between rounds, trainers wait.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/net/handshake.hpp"
#include "comm/push_pull.hpp"
#include "comm/trainer_messages.hpp"

namespace lockstep {

struct TrainerChange {
  int number;
  std::string host, process;  // as the trainer says; short and printable
  std::string why_left;       // empty: it has joined
  int trainers;               // that are there now
};

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
  // Adds the trainer's next micro-batch. `weights` are sent unless the trainer has them, or has no micro-batch left.
  // They change between rounds and by pushes that were applied, and only then.
  void answer(const Push& push, const PushAnswer& answer, const Tensor& weights) override;

  // All trainers end with this code and sentence. Waits briefly until they have it.
  void end(int code, const std::string& sentence);
  int trainers() const;  // that have joined and are still there
  // Those that joined or left since the last call.
  std::vector<TrainerChange> take_changes() { return std::exchange(changes_, {}); }
  // "trainer 0 (process 4711 on n1)", of one that has pushed.
  const std::string& name_of(int number) { return by_number(number).name; }

 private:
  struct Trainer {
    int number = -1;  // -1: it has not said who it is
    std::string host, process;
    std::string name;  // "trainer 0 (process 4711 on n1)"
    std::unique_ptr<SealedFrames> frames;
    bool is_ready = false;
    std::deque<int> micro_batches = {};      // that it has, the oldest one first
    std::int64_t round = 0;                  // in which it got them
    bool is_backed_up = false;               // others get them as well
    bool was_called_slow = false;            // in the log
    Stopwatch since_work = {};               // since it last got a message of work, or pushed
    std::int64_t weights = 0;                // their version that it has
    double silent_seconds = 0;               // while a message was due
    std::span<const std::byte> pushed = {};  // the push that next() has returned
  };

  bool is_round_over() const { return is_canceled_ || missing_.empty(); }
  std::int64_t weights_version() const { return round_ + updates_; }
  bool is_missing(const Trainer& trainer) const;
  bool is_late(const Trainer& trainer) const;
  std::optional<Push> next_push();
  std::optional<Push> read(Trainer& trainer);
  Push take_push(Trainer& trainer, const ReceivedMessage& message);
  void drop_push(Trainer& trainer);
  bool handle(Trainer& trainer, const ReceivedMessage& message);
  void admit(Trainer& trainer, const std::string& hello);
  void back_up_late_trainers();
  void offer_work();
  void send_work(Trainer& trainer, WorkHeader header, std::int64_t most, const Tensor& weights);
  void wait();
  void count_silence();
  void accept_trainers();
  void lose(Trainer& trainer, const std::string& why);
  std::size_t give_back(Trainer& trainer);
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
  std::int64_t round_ = 0;
  std::int64_t step_ = 0;
  Tensor weights_;
  int round_size_ = 0;             // micro-batches
  std::deque<int> micro_batches_;  // of the round, for trainers that are ready
  std::set<int> missing_;          // those whose push was not answered
  bool is_canceled_ = false;
  std::int64_t updates_ = 0;
  double usual_seconds_ = 0;  // from work to push, of all trainers, the last ones weigh most
  Stopwatch since_look_;      // at silence
  double alone_seconds_ = 0;
  std::vector<TrainerChange> changes_;
};

}  // namespace lockstep
