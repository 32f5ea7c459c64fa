// The part of SearchRun that concerns other processes of the same search.
#include <algorithm>
#include <csignal>

#include "base/log.hpp"
#include "search/search_run.hpp"

namespace lockstep {

// Takes the first order whose trial nobody runs. Looks once a second.
std::optional<Order> SearchRun::take_shared_order() {
  constexpr double pause_seconds = 1;
  if (looked_ && looked_->seconds() < pause_seconds) return std::nullopt;
  looked_.emplace();
  const auto free_order = [&]() -> std::optional<Order> {
    for (const Order& order : state_.open_orders()) {
      if (!running_.contains(order.trial) && !must_wait(order) && parts_.shared->is_free(order.trial)) return order;
    }
    return std::nullopt;
  };
  if (!state_.has_news() && !free_order()) return std::nullopt;
  state_.begin_decision();
  const std::optional<Order> order = free_order();
  if (order) {
    folder_.require_own_folder(order->trial);
    parts_.shared->take(order->trial);
    looked_.reset();  // more may be free
  }
  state_.end_decision();
  return order;
}

// Records what became of a trial. In a shared search, only if this process still has it.
void SearchRun::decide(std::int64_t trial, const std::function<void()>& record) {
  if (!parts_.shared) return record();
  state_.begin_decision();
  if (parts_.shared->holds(trial)) record();
  parts_.shared->release(trial);
  state_.end_decision();
  looked_.reset();
}

void SearchRun::look_for_lost_trials() {
  constexpr double pause_seconds = 1;
  if (checked_.seconds() < pause_seconds) return;
  checked_ = {};
  for (auto& [number, trial] : running_) {
    if (trial.is_lost || parts_.shared->holds(number)) continue;
    trial.is_lost = true;
    log::warning("another process has taken trial {}, because this one was silent for long. Its training stops here.",
                 number);
    trial.process.signal(SIGUSR1);  // it cannot write a checkpoint: the folder's lock is not its own any more
  }
}

}  // namespace lockstep
