#include "search/searcher.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>
#include <utility>

namespace lockstep {
namespace {

constexpr double worst = std::numeric_limits<double>::infinity();

}  // namespace

Searcher::Searcher(const SearcherOptions& options) : options_(options) {
  for (Bracket& plan : brackets_of(options)) {
    const std::size_t rungs = plan.lengths.size();
    brackets_.push_back({std::move(plan), std::vector<std::vector<Result>>(rungs)});
  }
}

std::vector<Order> Searcher::start() {
  std::vector<Order> orders;
  for (std::size_t bracket = 0; bracket < brackets_.size(); ++bracket) {
    for (std::int64_t count = brackets_[bracket].plan.concurrent; count > 0; --count) orders.push_back(create(bracket));
  }
  return orders;
}

Order Searcher::create(std::size_t bracket) {
  trials_.push_back({bracket});
  ++brackets_[bracket].created;
  ++brackets_[bracket].open;
  return order_at_rung(static_cast<std::int64_t>(trials_.size()));
}

Order Searcher::order_at_rung(std::int64_t trial) {
  const Trial& one = trial_at(trial);
  return {trial, one.rung, brackets_[one.bracket].plan.lengths[one.rung]};
}

std::vector<Order> Searcher::report(std::int64_t trial, std::optional<double> metric) {
  trial_at(trial).has_failed = !metric;
  const double value = metric.value_or(worst);
  return options_.kind == SearcherKind::successive_halving ? report_synchronous(trial, value)
                                                           : report_asynchronous(trial, value);
}

// Inserts a result, and returns the trial that is promoted because of it.
std::optional<std::int64_t> Searcher::promoted_at(std::vector<Result>& rung, std::int64_t trial, double metric) const {
  const auto share = [&](std::size_t results) {
    return static_cast<std::size_t>(static_cast<double>(results) / options_.divisor);
  };
  const bool decides_once = options_.promotion == Promotion::stop_once;
  const std::size_t before = share(rung.size());
  const std::size_t best = decides_once ? std::max<std::size_t>(share(rung.size() + 1), 1) : share(rung.size() + 1);
  const auto place = std::ranges::upper_bound(rung, metric, {}, &Result::metric);
  const bool is_best = static_cast<std::size_t>(place - rung.begin()) < best;
  rung.insert(place, {trial, metric, is_best});
  if (is_best) return trial;
  if (decides_once || best == before || rung[before].is_promoted) return std::nullopt;
  rung[before].is_promoted = true;
  return rung[before].trial;
}

std::vector<Order> Searcher::report_asynchronous(std::int64_t trial, double metric) {
  BracketState& bracket = brackets_[trial_at(trial).bracket];
  for (std::optional<std::int64_t> reported = trial; reported;) {
    const std::size_t rung = trial_at(*reported).rung;
    const bool is_last = rung + 1 == bracket.rungs.size();
    const std::optional<std::int64_t> promoted =
        is_last ? std::nullopt : promoted_at(bracket.rungs[rung], *reported, metric);
    reported.reset();
    if (!promoted) continue;
    ++trial_at(*promoted).rung;
    if (!trial_at(*promoted).has_failed) return {order_at_rung(*promoted)};
    reported = promoted;  // a failed trial has the worst result at the next rung, too
    metric = worst;
  }
  if (bracket.created == bracket.plan.trials) return {};
  return {create(static_cast<std::size_t>(&bracket - brackets_.data()))};
}

std::vector<Order> Searcher::report_synchronous(std::int64_t trial, double metric) {
  BracketState& bracket = brackets_[trial_at(trial).bracket];
  const std::size_t rung = trial_at(trial).rung;
  std::vector<Result>& results = bracket.rungs[rung];
  results.push_back({trial, metric});
  assert(bracket.open > 0);
  if (--bracket.open > 0 || rung + 1 == bracket.rungs.size()) return {};
  std::ranges::sort(results, [](const Result& a, const Result& b) {
    return a.metric != b.metric ? a.metric < b.metric : a.trial < b.trial;
  });
  const auto share = static_cast<std::size_t>(static_cast<double>(results.size()) / options_.divisor);
  std::vector<Order> orders;
  for (Result& one : std::span(results).first(std::max<std::size_t>(share, 1))) {
    if (trial_at(one.trial).has_failed) break;
    ++trial_at(one.trial).rung;
    orders.push_back(order_at_rung(one.trial));
  }
  bracket.open = static_cast<std::int64_t>(orders.size());
  std::ranges::sort(orders, {}, &Order::trial);
  return orders;
}

}  // namespace lockstep
