// Pushes to parameter servers, and pulls from them, whenever a trainer is ready: Downpour SGD (Dean et al. 2012, "Large
// scale distributed deep networks"). A trainer pushes what each server needs to update its parts of the weights, and
// pulls the parts as they are then. Trainers do not wait for each other.
//
//   const PushAnswer answer = exchange.push(...);               on a trainer, as often as it likes
//   exchange.leave();
//
//   while (const std::optional<Push> push = exchange.next()) {  on a server, until every trainer has left
//     exchange.receive(*push, ...);
//     ...                                                       updates its parts, or not
//     exchange.answer(*push, ...);
//   }
//
// The time between two collectives of all ranks is a round. At its begin, all trainers have the newest weights.
// A waiting rank sleeps between polls. For arrays in host memory.
//
// Two transports have these ends: MPI messages between the ranks of one world (PushPull), and TCP between a server and
// trainers that are programs of their own (remote_trainers.hpp, remote_server.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/point_to_point.hpp"
#include "device/flat/flat_passes.hpp"

namespace lockstep {

struct Push {
  int trainer;
  std::int64_t age;  // updates that this server has made since it last answered this trainer, or since the round began
  double learning_rate;
};

struct PushAnswer {
  std::int64_t age = 0;                 // as in the push
  bool is_applied = true;               // false: the weights are as before the push
  std::optional<int> micro_batch = {};  // that the trainer takes next; the first server hands them out
};

// What a push carries to a server: the server's parts of the gradients. `statistics`: to the first server only.
// `metrics`: over TCP only, because ranks of one world sum them at the end of a round.
struct PushedArrays {
  Tensor gradients;
  Tensor statistics;
  Tensor metrics;
};

class TrainerEnd {
 public:
  virtual ~TrainerEnd() = default;
  // Sends the arrays to the servers, and replaces `weights` by theirs. The first server's answer. Over TCP, the weights
  // stay as they are unless they have changed and the trainer has micro-batches left.
  virtual PushAnswer push(double learning_rate, const PushedArrays& arrays, const Tensor& weights) = 0;
};

class ServerEnd {
 public:
  virtual ~ServerEnd() = default;
  // The next push, or nothing if the round is over.
  virtual std::optional<Push> next() = 0;
  virtual void receive(const Push& push, const PushedArrays& arrays) = 0;  // into `arrays`
  virtual void answer(const Push& push, const PushAnswer& answer, const Tensor& weights) = 0;
};

class PushPull final : public TrainerEnd, public ServerEnd {
 public:
  // Collective. The last ranks are the servers. `parts`: those of every rank, trainers have none.
  PushPull(const Communicator& world, std::vector<std::vector<FlatPart>> parts);

  bool is_server() const { return world_.rank() >= trainers_; }  // also one without parts, of a tiny network
  bool is_first_server() const { return world_.rank() == trainers_; }
  int trainers() const { return trainers_; }

  PushAnswer push(double learning_rate, const PushedArrays& arrays, const Tensor& weights) override;
  // On a trainer, once in a round: it pushes no more.
  void leave();

  // A round is over if all trainers have left.
  std::optional<Push> next() override;
  void receive(const Push& push, const PushedArrays& arrays) override;
  void answer(const Push& push, const PushAnswer& answer, const Tensor& weights) override;

 private:
  Communicator world_;
  std::vector<std::vector<FlatPart>> parts_;
  int trainers_;
  std::vector<MessageRequest> requests_;
  std::int64_t updates_ = 0;               // that this server has made
  std::vector<std::int64_t> answered_at_;  // by trainer: the updates at the last answer
  int left_ = 0;                           // trainers, in this round
};

}  // namespace lockstep
