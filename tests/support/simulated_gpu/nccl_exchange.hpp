// What the ranks of a communicator of the simulated NCCL share: the operations that each has begun, and their data. The
// memory belongs to the process that makes the communicator's id.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "support/simulated_gpu/nccl_operation.hpp"

namespace lockstep::simulated {

enum class Life : std::uint8_t { absent, joined, ended, aborted };

class NcclExchange {
 public:
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;  // of one operation

  // Null if the process that made the id is gone.
  static NcclExchange* join(const ncclUniqueId& id, const NcclRank& own, int device);
  static ncclUniqueId make_id();

  const NcclRank& own() const { return own_; }
  int rank() const { return own_.rank; }
  int ranks() const { return own_.ranks; }
  bool all_have_joined() const;
  // Two ranks with one device, if there are any.
  bool shares_devices() const;

  std::uint64_t begun(int rank) const;  // number of operations
  std::uint64_t ended(int rank) const;
  // Publishes this rank's part of its next operation. Overwrites what all ranks have ended by then (may_begin).
  void begin(const Operation& operation, const std::byte* data, std::size_t bytes);
  bool may_begin() const;
  // Of this rank's oldest operation that it has not ended: what another rank, or this one, has published.
  const Operation& operation_of(int rank) const;
  const std::byte* data_of(int rank) const;
  void end();

  Life life(int rank) const;
  void set_life(Life life);
  bool has_died(int rank);  // its process

 private:
  static constexpr std::uint64_t slots = 4;

  struct Rank {
    std::atomic<std::uint64_t> begun;
    std::atomic<std::uint64_t> ended;
    std::atomic<Life> life;
    int process;
    int device;
    Operation operations[slots];
  };
  struct Shared {
    Rank ranks[most_nccl_ranks];
  };

  NcclExchange(std::byte* memory, const NcclRank& own, int device);

  static std::size_t total_bytes();
  static std::byte* map(int file);
  std::byte* slot_of(int rank, std::uint64_t sequence) const;
  Rank& at(int rank) const { return shared_->ranks[rank]; }

  std::byte* memory_;
  Shared* shared_;
  NcclRank own_;
  std::chrono::steady_clock::time_point looked_at_{};  // when has_died_ was found
  std::array<bool, most_nccl_ranks> has_died_{};
};

}  // namespace lockstep::simulated
