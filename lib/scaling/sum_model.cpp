#include "scaling/sum_model.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

double rounds_of(int members) { return 2.0 * std::bit_width(static_cast<unsigned>(members) - 1); }

double through_the_bus(int members) { return 2.0 * (members - 1) / members; }

Features within_features(const RankGrid& grid, double bytes) {
  const int members = grid.ranks_per_node();
  if (members == 1) return {};
  return {rounds_of(members), through_the_bus(members) * bytes, members * bytes};
}

// All ranks of a node send at a time, a slice each.
Features between_features(const RankGrid& grid, double bytes) {
  if (grid.nodes == 1) return {};
  return {rounds_of(grid.nodes), through_the_bus(grid.nodes) * bytes, 0};
}

}  // namespace

Interval SumModel::seconds(const RankGrid& grid, double bytes) const {
  assert(covers(grid));
  const Features features = within_features(grid, bytes);
  const Interval here = within.predict(features, within.at(features));
  if (grid.nodes == 1) return here;
  const Features others = between_features(grid, bytes);
  const Interval there = between->predict(others, between->at(others));
  if (grid.ranks_per_node() == 1) return there;
  const double half = std::hypot(here.half_width(), there.half_width());
  const double middle = here.middle + there.middle;
  return {middle, middle - half, middle + half};
}

double SumModel::latency_seconds(const RankGrid& grid) const { return seconds(grid, 0).middle; }

SumModel fit_sums(std::span<const SumSample> samples) {
  SumModel model;
  std::vector<Observation> here;
  for (const SumSample& sample : samples) {
    if (sample.grid.ranks == 1 || sample.grid.nodes > 1) continue;
    here.push_back({within_features(sample.grid, sample.bytes), sample.seconds, sample.seconds});
  }
  model.within = fit_non_negative(here);
  std::vector<Observation> there;
  for (const SumSample& sample : samples) {
    if (sample.grid.nodes == 1) continue;
    const double rest = sample.seconds - model.within.at(within_features(sample.grid, sample.bytes));
    there.push_back({between_features(sample.grid, sample.bytes), rest, sample.seconds});
  }
  if (!there.empty()) model.between = fit_non_negative(there);
  return model;
}

double bus_bandwidth(int ranks, double bytes, double seconds) { return through_the_bus(ranks) * bytes / seconds; }

}  // namespace lockstep
