#include "support/simulated_gpu/schedule.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace lockstep::simulated {
namespace {

constexpr std::chrono::microseconds poll_interval{50};

}  // namespace

Schedule::Schedule(const Settings& settings, RunGuarded run_guarded)
    : order_(settings.order), run_guarded_(std::move(run_guarded)), random_(settings.seed) {}

WorkHandle Schedule::add(std::vector<WorkHandle> after, Run run, int device, Lane lane, ConditionHandle condition) {
  std::erase_if(after, [](const WorkHandle& work) { return work == nullptr || work->is_done; });
  pending_.push_back(
      std::make_shared<Work>(Work{std::move(after), std::move(run), device, lane, std::move(condition)}));
  return pending_.back();
}

bool Schedule::is_ready(const Work& work) {
  return std::ranges::all_of(work.after, [](const WorkHandle& one) { return one->is_done; });
}

bool Schedule::may_run(const Work& work) {
  return is_ready(work) && (work.condition == nullptr || work.condition->ask() == Readiness::now);
}

void Schedule::wait_for_others(const Work& work) {
  while (work.condition != nullptr) {
    const Readiness found = work.condition->ask();
    if (found == Readiness::now) return;
    if (found == Readiness::never) work.condition->report_hang();
    std::this_thread::sleep_for(poll_interval);
  }
}

// Side streams run as late as possible: the work of the main stream comes first.
WorkHandle Schedule::open_before(const Work& work) {
  WorkHandle side;
  for (const WorkHandle& one : work.after) {
    if (one->is_done) continue;
    if (one->lane == Lane::main) return one;
    if (side == nullptr) side = one;
  }
  return side;
}

void Schedule::run(const WorkHandle& work) {
  std::erase(pending_, work);
  run_guarded_(*work);
  work->is_done = true;
  work->run = nullptr;
  work->after.clear();
}

void Schedule::finish(const WorkHandle& work) {
  if (order_ == Order::random) {
    if (work != nullptr) finish_in_any_order(*work);
    return;
  }
  std::vector<WorkHandle> path{work};  // down to work that is ready, and back up
  while (!path.empty()) {
    const WorkHandle last = path.back();
    const WorkHandle open = last == nullptr || last->is_done ? nullptr : open_before(*last);
    if (open != nullptr) {
      path.push_back(open);
      continue;
    }
    path.pop_back();
    if (last == nullptr || last->is_done) continue;
    wait_for_others(*last);
    run(last);
    advance_side_streams();
  }
}

void Schedule::finish_in_any_order(const Work& work) {
  while (!work.is_done) {
    if (run_any()) continue;
    for (const WorkHandle& one : pending_) {
      if (is_ready(*one) && one->condition->ask() == Readiness::never) one->condition->report_hang();
    }
    std::this_thread::sleep_for(poll_interval);
  }
}

void Schedule::finish_all(std::initializer_list<const Condition*> conditions) {
  const auto has_condition = [&](const WorkHandle& one) {
    return one->condition != nullptr && std::ranges::count(conditions, one->condition.get()) > 0;
  };
  for (auto next = std::ranges::find_if(pending_, has_condition); next != pending_.end();
       next = std::ranges::find_if(pending_, has_condition)) {
    finish(WorkHandle(*next));
  }
}

void Schedule::progress(const WorkHandle& work) {
  WorkHandle needed = work;
  for (WorkHandle open = work; open != nullptr; open = open_before(*needed)) needed = open;
  if (needed != nullptr && !needed->is_done && may_run(*needed)) run(needed);
}

void Schedule::advance() {
  if (order_ == Order::direct) run_while_any([](const Work&) { return true; });
  advance_side_streams();
  if (order_ != Order::random) return;
  for (std::uint64_t left = random_() % 4; left > 0 && run_any(); --left) {
  }
}

void Schedule::advance_side_streams() {
  if (order_ == Order::early) run_while_any([](const Work& one) { return one.lane == Lane::side; });
}

template <typename Wanted>
void Schedule::run_while_any(const Wanted& wanted) {
  const auto runs = [&](const WorkHandle& one) { return wanted(*one) && may_run(*one); };
  for (auto next = std::ranges::find_if(pending_, runs); next != pending_.end();
       next = std::ranges::find_if(pending_, runs)) {
    run(WorkHandle(*next));
  }
}

bool Schedule::run_any() {
  std::vector<WorkHandle> ready;
  std::ranges::copy_if(pending_, std::back_inserter(ready), [](const WorkHandle& one) { return may_run(*one); });
  if (ready.empty()) return false;
  run(ready[random_() % ready.size()]);
  return true;
}

}  // namespace lockstep::simulated
