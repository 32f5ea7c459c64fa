#include "train/rank_places.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/text/counted.hpp"

namespace lockstep {
namespace {

constexpr std::size_t max_named = 8;

// Each node with its number of ranks.
using Places = std::vector<std::pair<std::string, std::size_t>>;

Places places_of(std::span<const std::string> hosts) {
  Places places;
  for (const std::string& host : hosts) {
    const auto place = std::ranges::find(places, host, &Places::value_type::first);
    if (place == places.end()) {
      places.emplace_back(host, 1);
    } else {
      ++place->second;
    }
  }
  return places;
}

}  // namespace

std::string describe_rank_places(std::span<const std::string> hosts) {
  const Places places = places_of(hosts);
  if (places.size() == 1) return fmt::format("{} on {}", hosts.size(), places.front().first);
  std::string named;
  std::size_t left = hosts.size();
  for (const auto& [host, ranks] : std::span(places).first(std::min(max_named, places.size()))) {
    named += fmt::format("{}{} ({})", named.empty() ? "" : ", ", host, ranks);
    left -= ranks;
  }
  const std::size_t others = places.size() - std::min(max_named, places.size());
  if (others > 0) named += fmt::format(" and {} {} more ({})", others, others == 1 ? "node" : "nodes", left);
  return fmt::format("{} on {}", hosts.size(), named);
}

const char* name_of_trainer(int trainers, int ranks) { return trainers < ranks ? "trainer" : "rank"; }

std::string ranks_and_steps(std::int64_t ranks, std::int64_t accumulation_steps, const char* name) {
  return counted(ranks, name) + " x " + counted(accumulation_steps, "gradient accumulation step");
}

}  // namespace lockstep
