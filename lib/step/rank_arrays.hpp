// Arrays with an element for each of the weights that differ by rank, such as the state of an optimizer that each rank
// has for itself. In checkpoints, their tensors have the rank before their names: "rank000002.conv1.weight".
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

class RankArrays {
 public:
  // `store` outlives this.
  RankArrays(Communicator world, ParameterStore& store) : world_(std::move(world)), store_(store) {}

  const Communicator& world() const { return world_; }
  int ranks() const { return world_.size(); }
  bool is_first() const { return world_.rank() == 0; }

  // Collective, blocking. Passes the tensors of all ranks' arrays to `take`, one rank after another, on every rank.
  void visit(const Tensor& array, const ParameterStore::TakeEntry& take) const;
  // Assigns this rank's tensors, or sets the array to zero unless they are those of as many ranks as there are. Returns
  // their number of ranks. Throws Error(bad_data) unless they are whole.
  std::int64_t assign(const std::vector<ParameterStore::Entry>& of_all_ranks, const Tensor& array) const;
  // Their number of ranks. Throws likewise.
  std::int64_t ranks_in(const std::vector<ParameterStore::Entry>& of_all_ranks) const;

 private:
  Communicator world_;
  ParameterStore& store_;
};

}  // namespace lockstep
