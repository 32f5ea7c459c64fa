#include "support/simulated_gpu/nccl_operation.hpp"

#include <fmt/format.h>

#include <cstring>

#include "device/host_device.hpp"

namespace lockstep::simulated {
namespace {

constexpr std::array kind_names{"ncclAllReduce", "ncclReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast"};

const char* name_of(ncclDataType_t type) {
  return type == ncclFloat32    ? "ncclFloat32"
         : type == ncclBfloat16 ? "ncclBfloat16"
         : type == ncclInt64    ? "ncclInt64"
                                : "elements of another type";
}

bool is_rooted(Collective kind) { return kind == Collective::reduce || kind == Collective::broadcast; }

// Rank by rank, from the first one.
template <typename Element, typename Add>
void add_up(const RankData& data, int ranks, std::byte* to, std::uint64_t count, const Add& add) {
  for (std::uint64_t i = 0; i < count; ++i) {
    Element sum{};
    std::memcpy(&sum, data[0] + i * sizeof sum, sizeof sum);
    for (int rank = 1; rank < ranks; ++rank) {
      Element next{};
      std::memcpy(&next, data[static_cast<std::size_t>(rank)] + i * sizeof next, sizeof next);
      sum = add(sum, next);
    }
    std::memcpy(to + i * sizeof sum, &sum, sizeof sum);
  }
}

void add_up(ncclDataType_t type, const RankData& data, int ranks, std::byte* to, std::uint64_t count) {
  if (type == ncclFloat32) {
    add_up<float>(data, ranks, to, count, [](float a, float b) { return a + b; });
  } else if (type == ncclBfloat16) {
    add_up<std::uint16_t>(data, ranks, to, count,
                          [](std::uint16_t a, std::uint16_t b) { return to_bf16(from_bf16(a) + from_bf16(b)); });
  } else {
    add_up<std::uint64_t>(data, ranks, to, count, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  }
}

std::size_t share_bytes(const Operation& operation) { return operation.count * element_bytes(operation.type); }

std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace

std::size_t element_bytes(ncclDataType_t type) {
  return type == ncclFloat32 ? 4 : type == ncclBfloat16 ? 2 : type == ncclInt64 ? 8 : 0;
}

std::string describe(const Operation& operation) {
  return fmt::format("{} of {} {}{}", kind_names.at(static_cast<std::size_t>(operation.kind)), operation.count,
                     name_of(operation.type),
                     is_rooted(operation.kind) ? fmt::format(" with root {}", operation.root) : "");
}

std::size_t bytes_sent(const Operation& operation, const NcclRank& own) {
  if (operation.kind == Collective::broadcast && operation.root != own.rank) return 0;
  return share_bytes(operation) * (operation.kind == Collective::reduce_scatter ? index_of(own.ranks) : 1);
}

std::size_t bytes_received(const Operation& operation, const NcclRank& own) {
  if (operation.kind == Collective::reduce && operation.root != own.rank) return 0;
  return share_bytes(operation) * (operation.kind == Collective::all_gather ? index_of(own.ranks) : 1);
}

bool overlaps(const Operation& operation, const NcclRank& own, const std::byte* from, const std::byte* to) {
  const std::size_t sent = bytes_sent(operation, own);
  const std::size_t received = bytes_received(operation, own);
  const std::size_t before = share_bytes(operation) * index_of(own.rank);
  const bool is_in_place = operation.kind == Collective::reduce_scatter ? to == from + before
                           : operation.kind == Collective::all_gather   ? from == to + before
                                                                        : from == to;
  return !is_in_place && sent > 0 && received > 0 && from < to + received && to < from + sent;
}

void combine(const Operation& operation, const NcclRank& own, const RankData& data, std::byte* to) {
  if (bytes_received(operation, own) == 0) return;
  const std::size_t share = share_bytes(operation);
  if (operation.kind == Collective::broadcast) {
    std::memcpy(to, data.at(index_of(operation.root)), share);
  } else if (operation.kind == Collective::all_gather) {
    for (std::size_t rank = 0; rank < index_of(own.ranks); ++rank) std::memcpy(to + rank * share, data.at(rank), share);
  } else {
    const std::size_t offset = operation.kind == Collective::reduce_scatter ? share * index_of(own.rank) : 0;
    RankData terms = data;
    for (std::size_t rank = 0; rank < index_of(own.ranks); ++rank) terms.at(rank) += offset;
    add_up(operation.type, terms, own.ranks, to, operation.count);
  }
}

}  // namespace lockstep::simulated
