#include "runtime/watch/node_board.hpp"

#include <cstdint>
#include <new>

#include "base/error.hpp"
#include "base/system_failure.hpp"
#include "runtime/failure/failure_report.hpp"

namespace lockstep {

// A single rank needs no shared memory.
struct NodeBoard::Alone {
  RankStatus status{};
  std::atomic<int> report_state = 0;
};

NodeBoard::NodeBoard(const Communicator& node) {
  if (node.size() == 1) {
    alone_ = std::make_shared<Alone>();
    statuses_ = &alone_->status;
    report_state_ = &alone_->report_state;
    return;
  }
  const std::int64_t bytes = node.size() * std::int64_t{sizeof(RankStatus)};
  SharedMemoryError reason;
  segment_ = SharedSegment::create(node, bytes + std::int64_t{sizeof(std::atomic<int>)}, reason);
  if (segment_ == nullptr && node.rank() != 0) failure_report::leave_to_others();
  require(segment_ != nullptr, Failure::other, "cannot monitor the ranks: cannot allocate {}. {}", reason.message,
          remedy_for(reason.error_number, Access::shared_memory).advice);
  statuses_ = std::launder(reinterpret_cast<RankStatus*>(segment_->data()));
  report_state_ = std::launder(reinterpret_cast<std::atomic<int>*>(segment_->data() + bytes));
}

}  // namespace lockstep
