#include "runtime/rank_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"

namespace lockstep {

namespace {

std::string shard_words(std::int32_t shard) {
  const std::string name = rank_status::shard_name(shard);
  return name.empty() ? "a shard that is not known here" : fmt::format("shard '{}'", name);
}

}  // namespace

RankView view_of(const RankStatus& status, int rank, const std::string& host) {
  RankView view;
  view.rank = rank;
  view.host = host;
  view.code = status.code;
  view.phase = status.phase;
  view.step = status.step - 1;
  view.sum = status.sum;
  for (const RankStatus::Reader& reader : status.readers) {
    const std::int32_t shard = reader.shard;
    if (shard > 0) view.shards.push_back(shard - 1);
  }
  std::ranges::sort(view.shards);
  view.shards.erase(std::ranges::unique(view.shards).begin(), view.shards.end());
  return view;
}

std::string place_words(const RankView& view) {
  std::string words(words_of(view.phase));
  if (view.step >= 0) words += fmt::format(" at step {}", view.step);
  if (view.phase == Phase::reducing) words += fmt::format(", sum {}", view.sum);
  if (view.phase != Phase::reading && view.phase != Phase::testing && view.phase != Phase::opening_data) return words;
  for (const std::int32_t shard : view.shards) {
    words += fmt::format("{} {}", shard == view.shards.front() ? ", reading" : " and", shard_words(shard));
  }
  return words;
}

std::string rank_words(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  std::string words = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    words += fmt::format("{}{}", first == 0 ? "" : ", ", ranks[first]);
    if (last > first) words += fmt::format("-{}", ranks[last]);
    first = last + 1;
  }
  return words;
}

std::string seconds_words(double seconds) { return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 1 : 0); }

char process_state_of(int process) {
  try {
    constexpr std::size_t longest = 4096;
    const std::string text = read_file(fmt::format("/proc/{}/stat", process), longest);
    const std::size_t name_end = text.rfind(") ");
    return name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : '?';
  } catch (const Error&) {
    return '?';
  }
}

std::string to_text(std::span<const RankView> views) {
  nlohmann::json all = nlohmann::json::array();
  for (const RankView& view : views) {
    all.push_back({view.rank, view.code, static_cast<int>(view.phase), view.step, view.sum, view.shards,
                   static_cast<int>(view.process_state), view.still_seconds});
  }
  return all.dump();
}

std::vector<RankView> views_from_text(std::string_view text, const std::string& host) {
  std::vector<RankView> views;
  try {
    const nlohmann::json all = nlohmann::json::parse(text);
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
      view.still_seconds = fields.at(7);
      views.push_back(std::move(view));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("another node sent what no rank writes: {}", error.what()));
  }
  return views;
}

}  // namespace lockstep
