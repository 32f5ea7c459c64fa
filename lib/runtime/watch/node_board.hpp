// The shared memory in which the ranks of a node publish their state to each other.
#pragma once

#include <atomic>
#include <memory>

#include "comm/communicator.hpp"
#include "comm/shared_segment.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

class NodeBoard {
 public:
  // Collective over `node`. Throws Error(other) if there are several ranks and shared memory is not available.
  explicit NodeBoard(const Communicator& node);

  RankStatus& status(int node_rank) const { return statuses_[node_rank]; }
  std::atomic<int>& report_state() const { return *report_state_; }  // see failure_report::Shared

 private:
  struct Alone;
  std::shared_ptr<Alone> alone_;
  std::unique_ptr<SharedSegment> segment_;
  RankStatus* statuses_ = nullptr;
  std::atomic<int>* report_state_ = nullptr;
};

}  // namespace lockstep
