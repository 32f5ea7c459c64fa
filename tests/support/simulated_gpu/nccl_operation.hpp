// The collective operations of the simulated NCCL: what each rank sends, and what it receives.
#pragma once

#include <nccl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::simulated {

enum class Collective : std::uint8_t { all_reduce, reduce, reduce_scatter, all_gather, broadcast };

struct Operation {
  Collective kind;
  ncclDataType_t type;
  std::uint64_t count;  // as the call states it
  int root;             // 0 if there is none

  friend bool operator==(const Operation&, const Operation&) = default;
};

// Which rank, of how many.
struct NcclRank {
  int rank;
  int ranks;
};

constexpr int most_nccl_ranks = 8;
using RankData = std::array<const std::byte*, most_nccl_ranks>;  // by rank

std::size_t element_bytes(ncclDataType_t type);  // 0: the simulation does not exchange it
std::string describe(const Operation& operation);

std::size_t bytes_sent(const Operation& operation, const NcclRank& own);
std::size_t bytes_received(const Operation& operation, const NcclRank& own);
// Whether the memory sent and received overlaps other than in place, where a share lies as it lies in the whole.
bool overlaps(const Operation& operation, const NcclRank& own, const std::byte* from, const std::byte* to);
// Writes what the rank receives. `data`: what each rank has sent. Adds rank by rank, from the first one.
void combine(const Operation& operation, const NcclRank& own, const RankData& data, std::byte* to);

}  // namespace lockstep::simulated
