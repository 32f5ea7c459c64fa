#include "support/simulated_gpu/schedule.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::simulated {

Schedule::Schedule(const Settings& settings, RunGuarded run_guarded)
    : order_(settings.order), run_guarded_(std::move(run_guarded)), random_(settings.seed) {}

WorkHandle Schedule::add(std::vector<WorkHandle> after, Run run, int device, Lane lane) {
  std::erase_if(after, [](const WorkHandle& work) { return work == nullptr || work->is_done; });
  pending_.push_back(std::make_shared<Work>(Work{std::move(after), std::move(run), device, lane}));
  return pending_.back();
}

bool Schedule::is_ready(const Work& work) {
  return std::ranges::all_of(work.after, [](const WorkHandle& one) { return one->is_done; });
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
    while (work != nullptr && !work->is_done) run_any();
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
    run(last);
    run_early();
  }
}

void Schedule::progress(const WorkHandle& work) {
  WorkHandle needed = work;
  for (WorkHandle open = work; open != nullptr; open = open_before(*needed)) needed = open;
  if (needed != nullptr && !needed->is_done) run(needed);
}

void Schedule::advance() {
  while (order_ == Order::direct && !pending_.empty()) finish(WorkHandle(pending_.front()));
  run_early();
  if (order_ != Order::random) return;
  for (std::uint64_t left = random_() % 4; left > 0 && !pending_.empty(); --left) run_any();
}

void Schedule::run_early() {
  if (order_ != Order::early) return;
  const auto runs_early = [](const WorkHandle& one) { return one->lane == Lane::side && is_ready(*one); };
  for (auto next = std::ranges::find_if(pending_, runs_early); next != pending_.end();
       next = std::ranges::find_if(pending_, runs_early)) {
    run(WorkHandle(*next));
  }
}

void Schedule::run_any() {
  std::vector<WorkHandle> ready;
  std::ranges::copy_if(pending_, std::back_inserter(ready), [](const WorkHandle& one) { return is_ready(*one); });
  run(ready[random_() % ready.size()]);
}

}  // namespace lockstep::simulated
