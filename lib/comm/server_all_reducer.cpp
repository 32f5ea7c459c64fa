#include "comm/server_all_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "comm/host_arrays.hpp"
#include "comm/point_to_point.hpp"

namespace lockstep {
namespace {

// Ranks start the same slices in the same order, so messages of one kind arrive in the order in which they are
// expected.
constexpr int push_tag = 0;  // values to add
constexpr int pull_tag = 1;  // results

template <typename Value>
std::span<Value> elements(const Tensor& values, const SlicePart& part) {
  return {values.as<Value>() + part.first, static_cast<std::size_t>(part.count)};
}

// Whose values are added.
enum class Senders : std::uint8_t { nobody, trainers, all_ranks };
// Who gets the result.
enum class Receivers : std::uint8_t { nobody, all_ranks };

class ServerAllReducer final : public AllReducer {
 public:
  ServerAllReducer(const Communicator& world, int servers)
      : world_(world.split(0, world.rank())), servers_(servers), trainers_(trainers_of(world.size(), servers)) {
    assert(servers >= 1 && trainers_ >= 1);
  }

  Tensor allocate(std::int64_t count, DType dtype) override { return arrays_.allocate(count, dtype); }

  SlicePart part_of(const Tensor& values, int rank) const override {
    const std::int64_t count = values.shape().count();
    return rank < trainers_ ? SlicePart{count, 0} : equal_part(count, servers_, rank - trainers_);
  }

  void start_sum(const Tensor& values) override { start({values, Senders::all_ranks, Receivers::all_ranks}); }
  void start_rounded_sum(const Tensor& values) override { start({values, Senders::trainers, Receivers::all_ranks}); }
  void start_reduce_scatter(const Tensor& values) override { start({values, Senders::trainers, Receivers::nobody}); }
  bool scatters_same_bits() const override { return true; }
  void start_all_gather(const Tensor& values) override { start({values, Senders::nobody, Receivers::all_ranks}); }

  void wait() override {
    for (const Slice& slice : in_flight_) {
      slice.values.dtype() == DType::i64 ? finish<std::int64_t>(slice) : finish<float>(slice);
    }
    wait_all(requests_);
    requests_.clear();
    in_flight_.clear();
  }

  // Without the number of servers, which changes no bit.
  std::string description() const override {
    return fmt::format("parameter server ({})", counted(trainers_, "trainer"));
  }

 private:
  struct Slice {
    Tensor values;
    Senders senders;
    Receivers receivers;
  };

  void start(Slice slice) {
    slice.values.dtype() == DType::i64 ? push<std::int64_t>(slice) : push<float>(slice);
    in_flight_.push_back(std::move(slice));
  }

  bool sends(int rank, Senders senders) const {
    return senders == Senders::all_ranks || (senders == Senders::trainers && rank < trainers_);
  }

  // Of the servers that own a part.
  template <typename Act>
  void for_each_part(const Tensor& values, const Act& act) const {
    for (int server = trainers_; server < world_.size(); ++server) {
      const SlicePart part = part_of(values, server);
      if (part.count > 0) act(server, part);
    }
  }

  template <typename Value>
  void push(const Slice& slice) {
    if (!sends(world_.rank(), slice.senders)) return;
    for_each_part(slice.values, [&](int server, const SlicePart& part) {
      if (server == world_.rank()) return;
      requests_.push_back(start_send<Value>(world_, elements<Value>(slice.values, part), server, push_tag));
    });
  }

  template <typename Value>
  void finish(const Slice& slice) {
    const SlicePart own = part_of(slice.values, world_.rank());
    if (own.count > 0) add_up<Value>(elements<Value>(slice.values, own), slice.senders);
    if (slice.receivers == Receivers::nobody) return;
    for_each_part(slice.values, [&](int server, const SlicePart& part) {
      const std::span<Value> values = elements<Value>(slice.values, part);
      if (server != world_.rank()) {
        requests_.push_back(start_receive<Value>(world_, values, server, pull_tag));
        return;
      }
      for (int rank = 0; rank < world_.size(); ++rank) {
        if (rank != server) requests_.push_back(start_send<Value>(world_, values, rank, pull_tag));
      }
    });
  }

  // In the order of ranks, as the sums of other reducers on one node.
  template <typename Value>
  void add_up(std::span<Value> own, Senders senders) {
    if (senders == Senders::nobody) return;
    buffer_.resize(std::max(buffer_.size(), 2 * own.size_bytes()));
    const std::span<Value> mine(reinterpret_cast<Value*>(buffer_.data()), own.size());
    const std::span<Value> received(mine.data() + mine.size(), own.size());
    std::ranges::copy(own, mine.begin());
    receive<Value>(world_, own, 0, push_tag);
    for (int rank = 1; rank < world_.size(); ++rank) {
      if (!sends(rank, senders)) continue;
      if (rank != world_.rank()) receive<Value>(world_, received, rank, push_tag);
      const std::span<const Value> values = rank == world_.rank() ? mine : received;
      for (std::size_t i = 0; i < own.size(); ++i) own[i] += values[i];
    }
  }

  Communicator world_;
  int servers_;
  int trainers_;
  HostArrays arrays_;
  std::vector<Slice> in_flight_;
  std::vector<MessageRequest> requests_;
  std::vector<std::byte> buffer_;  // of a server, as large as the largest slice wants it
};

}  // namespace

int require_trainers(int ranks, int servers) {
  const int trainers = trainers_of(ranks, servers);
  require(
      trainers >= 1, Failure::usage,
      "{} cannot be {} and a trainer (--servers). Start more ranks: one for each server, and one or more that train.",
      counted(ranks, "rank"), counted(servers, "server"));
  return trainers;
}

std::unique_ptr<AllReducer> make_server_all_reducer(const Communicator& world, int servers) {
  return std::make_unique<ServerAllReducer>(world, servers);
}

}  // namespace lockstep
