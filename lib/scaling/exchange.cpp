#include "scaling/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text/counted.hpp"

namespace lockstep {

double pushed_through_busiest_link(const RankGrid& grid, std::int64_t servers) {
  const std::int64_t trainers = grid.ranks - servers;
  if (grid.nodes == 1) return std::max(static_cast<double>(trainers) / static_cast<double>(servers), 1.0);
  double most = 0;
  for (std::int64_t node = 0; node < grid.nodes; ++node) {
    const std::int64_t first = std::min<std::int64_t>(node * grid.ranks_per_node(), grid.ranks);
    const std::int64_t end = std::min<std::int64_t>(first + grid.ranks_per_node(), grid.ranks);
    const std::int64_t own_trainers = std::clamp<std::int64_t>(trainers - first, 0, end - first);
    const double own_share = static_cast<double>(end - first - own_trainers) / static_cast<double>(servers);
    const double received = own_share * static_cast<double>(trainers - own_trainers);
    most = std::max({most, received, static_cast<double>(own_trainers) * (1 - own_share)});
  }
  return most;
}

void require_trainers(const Exchange& exchange, int ranks) {
  require(exchange.servers < ranks, Failure::usage,
          "{} cannot be {} and a trainer (--servers). Choose more ranks, or fewer servers.", counted(ranks, "rank"),
          counted(exchange.servers, "server"));
}

std::string name_of(const Exchange& exchange) {
  if (exchange.local_steps > 1) return fmt::format("local {}", exchange.local_steps);
  if (exchange.servers > 0) return fmt::format("ps {}", exchange.servers);
  if (exchange.powersgd_rank > 0) return fmt::format("powersgd:{}", exchange.powersgd_rank);
  return "all-reduce";
}

std::string options_of(const Exchange& exchange) {
  if (exchange.local_steps > 1) return fmt::format("--sync local --local-steps {}", exchange.local_steps);
  if (exchange.servers > 0) return fmt::format("--sync ps --servers {}", exchange.servers);
  if (exchange.powersgd_rank > 0) return fmt::format("--compress powersgd:{}", exchange.powersgd_rank);
  return "--sync all-reduce";
}

}  // namespace lockstep
