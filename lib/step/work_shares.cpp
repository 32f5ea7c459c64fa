#include "step/work_shares.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <queue>
#include <utility>

namespace lockstep {

// Each micro-batch goes to the rank that would be done with it first.
std::vector<int> earliest_shares(std::span<const double> seconds_per_micro_batch, int micro_batches) {
  assert(std::ssize(seconds_per_micro_batch) <= micro_batches);
  using End = std::pair<double, std::size_t>;  // of a rank with one more
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  std::vector<int> shares(seconds_per_micro_batch.size(), 1);
  for (std::size_t rank = 0; rank < shares.size(); ++rank) ends.emplace(2 * seconds_per_micro_batch[rank], rank);
  for (int left = micro_batches - static_cast<int>(shares.size()); left > 0; --left) {
    const std::size_t rank = ends.top().second;
    ends.pop();
    ++shares[rank];
    ends.emplace((shares[rank] + 1) * seconds_per_micro_batch[rank], rank);
  }
  return shares;
}

WorkShares::WorkShares(int ranks, int micro_batches_per_rank)
    : shares_(static_cast<std::size_t>(ranks), micro_batches_per_rank) {
  done_.micro_batches.resize(shares_.size());
}

int WorkShares::micro_batches() const { return std::accumulate(shares_.begin(), shares_.end(), 0); }

int WorkShares::first(int rank) const { return std::accumulate(shares_.begin(), shares_.begin() + rank, 0); }

void WorkShares::end_step(std::span<const double> busy_seconds) {
  assert(busy_seconds.size() == shares_.size());
  constexpr double least = 1e-9;  // a clock may stand still
  const bool is_first = seconds_.empty();
  seconds_.resize(shares_.size());
  for (std::size_t rank = 0; rank < shares_.size(); ++rank) {
    const double now = std::max(busy_seconds[rank] / shares_[rank], least);
    seconds_[rank] = is_first ? now : (seconds_[rank] + now) / 2;
    done_.micro_batches[rank] += shares_[rank];
    done_.busy_seconds += busy_seconds[rank];
  }
  done_.step_seconds += std::ranges::max(busy_seconds);
  ++done_.steps;
  shares_ = earliest_shares(seconds_, micro_batches());
}

}  // namespace lockstep
