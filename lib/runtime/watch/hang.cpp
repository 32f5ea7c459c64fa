#include "runtime/watch/hang.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace lockstep {
namespace {

using Views = std::vector<RankView>;

// Ranks by what they are doing, ordered by the first rank of each group.
std::vector<std::pair<std::string, std::vector<int>>> by_place(std::span<const RankView> views) {
  std::vector<std::pair<std::string, std::vector<int>>> places;
  for (const RankView& view : views) {
    const std::string message = view.code == RankStatus::done ? "done" : describe_place(view);
    const auto known = std::ranges::find(places, message, [](const auto& place) { return place.first; });
    if (known == places.end()) {
      places.push_back({message, {view.rank}});
    } else {
      known->second.push_back(view.rank);
    }
  }
  return places;
}

const RankView* longest_still(const Views& views) {
  const auto longest = std::ranges::max_element(views, {}, &RankView::stalled_seconds);
  return longest == views.end() ? nullptr : &*longest;
}

RankFailure describe_stopped(const RankView& rank, std::span<const RankView> all) {
  return {rank.rank, rank.host,
          fmt::format("rank {} on {} has been stopped for {} while {}{}. Continue it (kill -CONT) or end it. "
                      "--hang-timeout 0 waits forever.",
                      rank.rank, rank.host, format_seconds(rank.stalled_seconds), describe_place(rank),
                      describe_others(all, rank.rank))};
}

RankFailure describe_stuck(const RankView& rank, std::span<const RankView> all) {
  const std::string state = rank.process_state == 'D' ? ", its process waiting for a disk or file system" : "";
  return {rank.rank, rank.host,
          fmt::format("rank {} on {} has made no progress for {}: {}{}{}. Check that node and its file system. If the "
                      "work takes this long, raise --hang-timeout.",
                      rank.rank, rank.host, format_seconds(rank.stalled_seconds), describe_place(rank), state,
                      describe_others(all, rank.rank))};
}

// If a device waits for others in a sum, its host waits in the end, too, whatever it is doing now.
bool waits(const RankView& view) { return waits_for_others(view.phase) || (view.device && view.device->is_summing()); }

const char* advice_to_waiting(const Views& views) {
  const RankView& rank = views.front();
  const bool is_one_node = std::ranges::all_of(views, [&](const RankView& view) { return view.host == rank.host; });
  if (!is_one_node) return "Check the network between them.";
  if (rank.device) return "Check the link between their GPUs (nvidia-smi, dmesg).";
  return "Their node may have too few cores. Start fewer ranks, or raise --hang-timeout.";
}

RankFailure describe_waiting(const Views& views) {
  const RankView& rank = views.front();
  std::vector<int> ranks;
  for (const RankView& view : views) ranks.push_back(view.rank);
  return {rank.rank, rank.host,
          fmt::format("{} have waited for each other for {} ({}). {}", describe_ranks(ranks),
                      format_seconds(rank.stalled_seconds), describe_place(rank), advice_to_waiting(views))};
}

// Hosts queue steps ahead and then wait at arbitrary places, so the progress of their devices tells which rank is
// behind. Nothing if it is equal on all ranks and no device waits.
std::optional<RankFailure> describe_devices(const Views& views) {
  if (!std::ranges::all_of(views, [](const RankView& view) { return view.device.has_value(); })) return std::nullopt;
  const auto place = [](const RankView& view) { return std::pair(view.device->marks.begun, view.device->marks.ended); };
  const auto [behind, ahead] = std::ranges::minmax_element(views, {}, place);
  if (place(*behind) == place(*ahead)) {
    return behind->device->is_summing() ? std::optional(describe_waiting(views)) : std::nullopt;
  }
  return RankFailure{
      behind->rank, behind->host,
      fmt::format("rank {} on {} blocks the others: for {}, its GPU has been {}{}. Check that node's GPU "
                  "(nvidia-smi, dmesg). If the work takes this long, raise --hang-timeout.",
                  behind->rank, behind->host, format_seconds(behind->device->stalled_seconds),
                  describe_device(*behind->device), describe_others(views, behind->rank))};
}

// All ranks wait for others. The place with the fewest ranks is the one that nobody else will reach. Ties go to the
// place that is behind.
RankFailure describe_all_waiting(const Views& views) {
  if (const std::optional<RankFailure> found = describe_devices(views)) return *found;
  std::map<std::tuple<std::int64_t, std::int64_t, Phase>, Views> places;
  for (const RankView& view : views) places[{view.step, view.sum, view.phase}].push_back(view);
  const auto fewest = std::ranges::min_element(places, {}, [](const auto& place) { return place.second.size(); });
  const RankView& rank = fewest->second.front();
  if (places.size() == 1) return describe_waiting(views);
  return {rank.rank, rank.host,
          fmt::format("rank {} on {} is out of step: {} for {}{}. Please report it.", rank.rank, rank.host,
                      describe_place(rank), format_seconds(rank.stalled_seconds), describe_others(views, rank.rank))};
}

}  // namespace

void StallTimer::look(std::uint64_t progress, double waking_seconds) {
  seconds_ = progress_ == progress ? seconds_ + waking_seconds : 0;
  progress_ = progress;
}

std::uint64_t progress_of(const RankStatus::Device& device) { return device.begun + device.ended; }

std::uint64_t progress_of(const RankStatus& status) {
  std::uint64_t sum = status.progress + static_cast<std::uint64_t>(status.main_thread_ns.load());
  for (const RankStatus::Reader& reader : status.readers_in_use()) sum += reader.progress;
  return sum + progress_of(status.device);
}

std::vector<TeamInView> teams_in_view(std::span<const RankView> views, int job_size) {
  std::vector<TeamInView> teams;
  for (const RankView& view : views) {
    auto known = std::ranges::find(teams, view.team, &TeamInView::team);
    if (known == teams.end()) known = teams.insert(teams.end(), {view.team, {}, Coverage::some_ranks});
    known->views.push_back(view);
  }
  for (TeamInView& team : teams) {
    const int size = team.team == Team{} ? job_size : team.team.size;
    if (static_cast<int>(team.views.size()) == size) team.coverage = Coverage::all_ranks;
  }
  return teams;
}

std::optional<RankFailure> find_hang(std::span<const RankView> views, double timeout_seconds, Coverage coverage) {
  Views running;
  std::ranges::copy_if(views, std::back_inserter(running),
                       [](const RankView& view) { return view.code == RankStatus::running; });
  Views still;
  std::ranges::copy_if(running, std::back_inserter(still),
                       [&](const RankView& view) { return view.stalled_seconds >= timeout_seconds; });
  Views stopped;
  std::ranges::copy_if(still, std::back_inserter(stopped), &RankView::is_stopped);
  if (const RankView* const rank = longest_still(stopped)) return describe_stopped(*rank, views);
  Views working;
  std::ranges::copy_if(still, std::back_inserter(working), [](const RankView& view) { return !waits(view); });
  if (const RankView* const rank = longest_still(working)) return describe_stuck(*rank, views);
  const bool nobody_gets_on = !still.empty() && still.size() == running.size();
  if (!nobody_gets_on || coverage == Coverage::some_ranks) return std::nullopt;
  return describe_all_waiting(running);
}

std::string describe_others(std::span<const RankView> views, int culprit) {
  constexpr std::size_t most = 4;  // places that are listed
  Views others;
  std::ranges::copy_if(views, std::back_inserter(others), [&](const RankView& view) { return view.rank != culprit; });
  const auto places = by_place(others);
  if (places.empty()) return "";
  std::string message;
  for (std::size_t place = 0; place < std::min(places.size(), most); ++place) {
    message +=
        fmt::format("{}{}: {}", place == 0 ? "" : "; ", describe_ranks(places[place].second), places[place].first);
  }
  if (places.size() > most) message += "; others elsewhere";
  return " (" + message + ")";
}

}  // namespace lockstep
