#include "train/observers/straggler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <sstream>
#include <utility>

#include "base/log.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

Straggler find_straggler(std::span<const StepTimes> ranks) {
  assert(!ranks.empty());
  std::vector<double> arrivals;
  double step_ms = 0;
  for (const StepTimes& times : ranks) {
    arrivals.push_back(times.arrival_ms());
    step_ms = std::max(step_ms, times.arrival_ms() + times.waiting_ms);
  }
  const auto last = std::ranges::max_element(arrivals);
  Straggler straggler;
  straggler.rank = static_cast<int>(last - arrivals.begin());
  const double latest_ms = *last;
  const auto middle = arrivals.begin() + static_cast<std::ptrdiff_t>((arrivals.size() - 1) / 2);
  std::ranges::nth_element(arrivals, middle);
  straggler.cost = step_ms > 0 ? (latest_ms - *middle) / step_ms : 0;
  straggler.middle_arrival_ms = *middle;
  straggler.times = ranks[static_cast<std::size_t>(straggler.rank)];
  const StepTimes& times = straggler.times;
  const bool are_two = ranks.size() == 2;
  const bool is_one_node = std::ranges::all_of(ranks, [&](const StepTimes& rank) { return rank.host == times.host; });
  straggler.sentence = fmt::format(
      "rank {} on {} delays the other rank{} by {:.0f} % of a step. It reaches the exchange with other ranks after "
      "{:.1f} ms "
      "(data {:.1f}, computing {:.1f}), {} after {:.1f}. {}",
      straggler.rank, times.host, are_two ? "" : "s", 100 * straggler.cost, latest_ms, times.data_ms, times.compute_ms,
      are_two ? "the other" : "the median rank", *middle,
      is_one_node ? "Check whether its cores are busy with other work or its data are slow to read."
                  : "Check whether that node is busy or reads slowly.");
  return straggler;
}

StragglerWatch::Spent StragglerWatch::spent() {
  const auto in = [](Phase phase) { return rank_status::record().spent_ns[static_cast<std::size_t>(phase)].load(); };
  return {in(Phase::reading), in(Phase::forward) + in(Phase::backward) + in(Phase::updating),
          in(Phase::sharing_norms) + in(Phase::reducing) + in(Phase::gathering_weights)};
}

void StragglerWatch::on_pause(const TrainingView& training) {
  const std::optional<Straggler> slowest = report(training.progress.step);
  if (!slowest) return;
  failure_.run([&] {
    stream_.append("slowest rank", training, training.progress.step,
                   {{"rank", slowest->rank},
                    {"host", slowest->times.host},
                    {"cost", slowest->cost},
                    {"data_ms", slowest->times.data_ms},
                    {"compute_ms", slowest->times.compute_ms},
                    {"arrival_ms", slowest->times.arrival_ms()},
                    {"middle_arrival_ms", slowest->middle_arrival_ms}});
  });
}

std::optional<Straggler> StragglerWatch::report(std::int64_t steps) {
  constexpr double worth_telling = 0.05;
  const std::int64_t count = steps - std::exchange(steps_before_, steps);
  if (trainers_ == 1 || count == 0) return std::nullopt;
  rank_status::enter(Phase::gathering);
  const Spent now = spent();
  const auto mean_ms = [&](std::int64_t Spent::*what) {
    return static_cast<double>(now.*what - before_.*what) / 1e6 / static_cast<double>(count);
  };
  const std::string own = fmt::format("{} {} {} {}", mean_ms(&Spent::data_ns), mean_ms(&Spent::compute_ns),
                                      mean_ms(&Spent::waiting_ns), log::host());
  before_ = now;
  std::vector<StepTimes> ranks;
  for (const std::string& said : world_.gather(own, 0)) {
    StepTimes times;
    std::istringstream(said) >> times.data_ms >> times.compute_ms >> times.waiting_ms >> times.host;
    ranks.push_back(std::move(times));
  }
  if (ranks.empty()) return std::nullopt;
  ranks.resize(static_cast<std::size_t>(trainers_));
  Straggler slowest = find_straggler(ranks);
  const int late = slowest.cost > worth_telling ? slowest.rank : nobody;
  const int to_name = late == std::exchange(late_before_, late) ? late : nobody;
  if (to_name != nobody && to_name != named_) log::info(std::string_view(slowest.sentence));
  if (to_name != nobody || late == nobody) named_ = to_name;
  return slowest;
}

}  // namespace lockstep
