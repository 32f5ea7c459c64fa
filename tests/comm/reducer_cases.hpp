// Every reducer of host memory, over ranks that sit on nodes in various ways, and values whose sums depend on the
// order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "comm/shared_all_reducer.hpp"

namespace lockstep {

inline Communicator world() { return Communicator(MPI_COMM_WORLD); }

inline std::int64_t bytes_of(std::int64_t count) { return count * size_of(DType::f32); }

// Values whose sum depends on the order: every rank knows those of all.
inline float value_of(int rank, std::int64_t step, std::int64_t index) {
  const auto key = static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint64_t>(step);
  const auto bits = philox(key, 0, static_cast<std::uint64_t>(index));
  return (uniform(bits[0]) - 0.5F) * static_cast<float>(1 << (bits[1] % 16));
}

inline float sum_in_rank_order(int ranks, std::int64_t step, std::int64_t index) {
  float sum = value_of(0, step, index);
  for (int rank = 1; rank < ranks; ++rank) sum += value_of(rank, step, index);
  return sum;
}

// The world as if its ranks sat on several nodes: `node_of` says where each one is.
inline std::unique_ptr<AllReducer> over_nodes(const std::function<int(int rank)>& node_of, std::int64_t bytes) {
  const Communicator all = world();
  const Communicator node = all.split(node_of(all.rank()), all.rank());
  SharedMemoryError reason;
  return make_shared_all_reducer(all, sharing_groups(all, node), bytes, reason);
}

struct ReducerCase {
  std::string name;
  std::function<std::unique_ptr<AllReducer>(std::int64_t bytes)> make;
  bool sums_in_rank_order = false;
};

inline std::vector<ReducerCase> reducer_cases() {
  const auto named = [](const std::string& name) {
    return [name](std::int64_t bytes) { return make_cpu_all_reducer(name, world(), bytes); };
  };
  const auto placed = [](int (*node_of)(int)) {
    return [node_of](std::int64_t bytes) { return over_nodes(node_of, bytes); };
  };
  return {{"mpi", named("mpi")},
          {"shared", named("shared"), true},
          {"automatic", named("auto"), true},
          {"nodes_of_two", placed([](int rank) { return rank / 2; })},
          {"ranks_dealt_to_two_nodes", placed([](int rank) { return rank % 2; })},
          {"nodes_of_unequal_size", placed([](int rank) { return rank == 0 ? 0 : 1; })},
          {"every_rank_on_its_own_node", placed([](int rank) { return rank; })}};
}

}  // namespace lockstep
