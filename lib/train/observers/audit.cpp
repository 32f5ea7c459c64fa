#include "train/observers/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "dataset/shards/hash.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/watch/rank_status.hpp"
#include "runtime/watch/rank_view.hpp"

namespace lockstep {
namespace {

std::string hash_of(const ParameterStore& store) {
  std::vector<float> values(static_cast<std::size_t>(store.gradient_count() + store.statistics_count()));
  const auto weights = static_cast<std::size_t>(store.gradient_count());
  store.device().read(store.values(), std::span(values).first(weights));
  if (store.statistics_count() > 0) store.device().read(store.running(), std::span(values).subspan(weights));
  return xxh3_64_hex(std::as_bytes(std::span(values)));
}

}  // namespace

std::string deviation_message(std::span<const WeightsOnRank> ranks, std::int64_t step) {
  std::map<std::string, std::vector<int>> by_hash;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) by_hash[ranks[rank].hash].push_back(static_cast<int>(rank));
  if (by_hash.size() <= 1) return "";
  const auto size = [](const auto& group) { return group.second.size(); };
  const std::size_t most = size(*std::ranges::max_element(by_hash, {}, size));
  const bool is_clear = std::ranges::count(by_hash, most, size) == 1;
  std::vector<int> deviating;
  for (const auto& [hash, group] : by_hash) {
    if (!is_clear || group.size() < most) deviating.insert(deviating.end(), group.begin(), group.end());
  }
  std::ranges::sort(deviating);
  std::vector<std::string> hosts;
  for (const int rank : deviating) hosts.push_back(ranks[static_cast<std::size_t>(rank)].host);
  hosts.erase(std::ranges::unique(hosts).begin(), hosts.end());
  const std::string where = fmt::format("{} on {}", describe_ranks(deviating), fmt::join(hosts, ", "));
  const std::string what =
      is_clear ? fmt::format("{} {} different weights than the other {} ranks after step {}", where,
                             deviating.size() == 1 ? "has" : "have", most, step)
               : fmt::format("the weights of {} differ after step {}, and it is unknown which ones are correct", where,
                             step);
  return what + ". Memory or an all-reduce is faulty. Start again. If it happens again, exclude that node.";
}

void audit_weights(const Communicator& world, const ParameterStore& store, std::int64_t step) {
  if (world.size() == 1) return;
  std::string own;
  ContainedFailure failure(world);
  failure.run([&] { own = hash_of(store); });
  failure.agree(Phase::gathering);
  rank_status::enter(Phase::gathering);
  std::vector<WeightsOnRank> ranks;
  for (const std::string& said : world.all_gather(own + log::host())) {
    ranks.push_back({said.substr(own.size()), said.substr(0, own.size())});
  }
  const std::string message = deviation_message(ranks, step);
  if (!message.empty()) throw_on_all_ranks(world, 0, Error(Failure::out_of_step, message));
}

}  // namespace lockstep
