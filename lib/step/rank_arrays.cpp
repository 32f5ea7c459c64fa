#include "step/rank_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

// Sorted as the ranks.
std::string prefix_of(std::int64_t rank) { return fmt::format("rank{:06}.", rank); }

}  // namespace

void RankArrays::visit(const Tensor& array, const ParameterStore::TakeEntry& take) const {
  for (int rank = 0; rank < world_.size(); ++rank) {
    store_.visit(array, [&](ParameterStore::Entry entry) {
      rank_status::enter(Phase::gathering);
      world_.broadcast(std::as_writable_bytes(std::span(entry.values)), rank);
      entry.name = prefix_of(rank) + entry.name;
      take(std::move(entry));
    });
  }
}

std::int64_t RankArrays::assign(const std::vector<ParameterStore::Entry>& of_all_ranks, const Tensor& array) const {
  const std::int64_t ranks = ranks_in(of_all_ranks);
  if (ranks != world_.size()) {
    store_.device().write(std::vector<float>(static_cast<std::size_t>(array.shape().count())), array);
    return ranks;
  }
  const std::string prefix = prefix_of(world_.rank());
  std::vector<ParameterStore::Entry> own;
  for (const ParameterStore::Entry& entry : of_all_ranks) {
    if (!entry.name.starts_with(prefix)) continue;
    own.push_back(entry);
    own.back().name.erase(0, prefix.size());
  }
  store_.assign_to(array, own);
  return ranks;
}

std::int64_t RankArrays::ranks_in(const std::vector<ParameterStore::Entry>& of_all_ranks) const {
  std::vector<std::string> names;
  for (const Parameter& parameter : store_.parameters()) names.push_back(parameter.name);
  std::ranges::sort(names);
  const auto parameters = std::ssize(names);
  const std::int64_t ranks = std::ssize(of_all_ranks) / parameters;
  bool is_whole = ranks >= 1 && std::ssize(of_all_ranks) % parameters == 0;
  for (std::int64_t rank = 0; is_whole && rank < ranks; ++rank) {
    for (std::ptrdiff_t i = 0; i < parameters; ++i) {
      const std::string& name = of_all_ranks[static_cast<std::size_t>(rank * parameters + i)].name;
      is_whole = is_whole && name == prefix_of(rank) + names[static_cast<std::size_t>(i)];
    }
  }
  require(is_whole, Failure::bad_data,
          "the checkpoint is damaged: of the ranks' own arrays, tensors are missing or belong to another model. Use an "
          "older checkpoint, if there is one.");
  return ranks;
}

}  // namespace lockstep
