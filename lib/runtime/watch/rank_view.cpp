#include "runtime/watch/rank_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text/json_text.hpp"

namespace lockstep {

namespace {

std::string describe_shard(std::int32_t shard) {
  const std::string name = rank_status::shard_name(shard);
  return name.empty() ? "an unknown shard" : fmt::format("shard '{}'", name);
}

// Time between two marks of one device. The first mark may already have been overwritten.
std::string describe_interval(std::uint64_t from_ns, std::uint64_t to_ns) {
  return fmt::format("{:.1f} ms", to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1e6 : 0.0);
}

std::string describe_device_place(const DeviceView& device) {
  const SumMarks& marks = device.marks;
  if (device.is_summing()) return fmt::format("in sum {} (bucket {})", marks.begun, marks.bucket);
  return marks.ended == 0 ? "before its first sum" : fmt::format("computing after sum {}", marks.ended);
}

// In other phases the device is idle, or computes no sums.
bool is_of_a_step(Phase phase) {
  return phase == Phase::reading || phase == Phase::forward || phase == Phase::backward ||
         phase == Phase::sharing_norms || phase == Phase::reducing || phase == Phase::updating ||
         phase == Phase::gathering_weights;
}

}  // namespace

RankView view_of(const RankStatus& status, int rank, const std::string& host) {
  RankView view;
  view.rank = rank;
  view.host = host;
  view.code = status.code;
  const int first = status.team_first - 1;
  if (first >= 0) view.team = {first, status.team_size};
  view.phase = status.phase;
  view.step = status.step - 1;
  view.sum = status.sum;
  for (const RankStatus::Reader& reader : status.readers_in_use()) {
    const std::int32_t shard = reader.shard;
    if (shard > 0) view.shards.push_back(shard - 1);
  }
  if (status.device.is_shown) {
    const RankStatus::Device& device = status.device;
    view.device = DeviceView{.marks = {device.begun, device.bucket, device.begun_ns, device.ended, device.ended_ns}};
  }
  std::ranges::sort(view.shards);
  view.shards.erase(std::ranges::unique(view.shards).begin(), view.shards.end());
  return view;
}

std::string describe_host(const RankView& view) {
  std::string message(describe(view.phase));
  if (view.step >= 0) message += fmt::format(" at step {}", view.step);
  const bool is_exchanging = view.phase == Phase::reducing || view.phase == Phase::gathering_weights;
  if (is_exchanging && !view.device) message += fmt::format(", sum {}", view.sum);
  constexpr std::array reads = {Phase::staging, Phase::opening_data, Phase::reading, Phase::testing};
  if (std::ranges::find(reads, view.phase) == reads.end()) return message;
  std::vector<std::string> shards;
  shards.reserve(view.shards.size());
  for (const std::int32_t shard : view.shards) shards.push_back(describe_shard(shard));
  std::ranges::sort(shards);
  return shards.empty() ? message : fmt::format("{}, reading {}", message, fmt::join(shards, " and "));
}

std::string describe_place(const RankView& view) {
  if (!view.device || !(view.device->is_summing() || is_of_a_step(view.phase))) return describe_host(view);
  return describe_host(view) + ", the GPU " + describe_device_place(*view.device);
}

std::string describe_device(const DeviceView& device) {
  const SumMarks& marks = device.marks;
  std::string message = describe_device_place(device);
  if (marks.ended == 0) return message;
  if (device.is_summing())
    return message + ", after computing for " + describe_interval(marks.ended_ns, marks.begun_ns);
  return message + ", which took " + describe_interval(marks.begun_ns, marks.ended_ns);
}

std::string describe_ranks(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  std::string message = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    message += fmt::format("{}{}", first == 0 ? "" : ", ", ranks[first]);
    if (last > first) message += fmt::format("-{}", ranks[last]);
    first = last + 1;
  }
  return message;
}

std::string format_seconds(double seconds) { return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 1 : 0); }

std::string to_text(std::span<const RankView> views) {
  nlohmann::json all = nlohmann::json::array();
  const auto fields_of = [](const std::optional<DeviceView>& device) -> nlohmann::json {
    if (!device) return nullptr;
    const SumMarks& marks = device->marks;
    return {marks.begun, marks.bucket, marks.begun_ns, marks.ended, marks.ended_ns, device->stalled_seconds};
  };
  for (const RankView& view : views) {
    all.push_back({view.rank, view.code, static_cast<int>(view.phase), view.step, view.sum, view.shards,
                   static_cast<int>(view.process_state), view.stalled_seconds, fields_of(view.device), view.team.first,
                   view.team.size});
  }
  return json_text(all);
}

std::vector<RankView> views_from_text(std::string_view text, const std::string& host) {
  std::vector<RankView> views;
  try {
    const nlohmann::json all = parse_json(text);
    for (const nlohmann::json& fields : all) {
      RankView view;
      view.host = host;
      view.rank = fields.at(0);
      view.code = fields.at(1);
      view.phase = static_cast<Phase>(fields.at(2).get<std::int32_t>());
      view.step = fields.at(3);
      view.sum = fields.at(4);
      view.shards = fields.at(5).get<std::vector<std::int32_t>>();
      view.process_state = static_cast<char>(fields.at(6).get<int>());
      view.stalled_seconds = fields.at(7);
      const nlohmann::json& device = fields.at(8);
      if (!device.is_null()) {
        view.device = {{device.at(0), device.at(1), device.at(2), device.at(3), device.at(4)}, device.at(5)};
      }
      view.team = {fields.at(9), fields.at(10)};
      views.push_back(std::move(view));
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(
        "another node sent invalid status messages. Its ranks cannot be monitored. Check that all nodes run the same "
        "version.");
  }
  return views;
}

}  // namespace lockstep
