#include "scaling/all_reduce_model.hpp"

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

// All ranks of a node send at the same time, one slice each.
Features between_features(const RankGrid& grid, double bytes) {
  if (grid.nodes == 1) return {};
  const auto paired = static_cast<int>(std::bit_floor(static_cast<unsigned>(grid.nodes)));
  const bool is_detour = paired != grid.nodes;
  const double rounds = rounds_of(paired) + (is_detour ? 3 : 0);
  const double detours = is_detour ? 2 : 0;
  return {rounds, (through_the_bus(paired) + detours) * bytes, (rounds_of(paired) / 2 + detours) * bytes};
}

// Judges the error of a small all-reduce relative to a large one on the same ranks, because steps wait for the large
// ones.
std::vector<double> scales_of(std::span<const AllReduceSample> samples) {
  constexpr double least_share = 0.25;
  std::vector<double> scales;
  for (const AllReduceSample& one : samples) {
    double longest = 0;
    for (const AllReduceSample& other : samples) {
      const bool is_alike = other.grid.ranks == one.grid.ranks && other.grid.nodes == one.grid.nodes;
      if (is_alike) longest = std::max(longest, other.seconds);
    }
    scales.push_back(std::max(one.seconds, least_share * longest));
  }
  return scales;
}

}  // namespace

Interval AllReduceModel::seconds(const RankGrid& grid, double bytes) const {
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

double AllReduceModel::latency_seconds(const RankGrid& grid) const { return seconds(grid, 0).middle; }

AllReduceModel fit_all_reduces(std::span<const AllReduceSample> samples) {
  AllReduceModel model;
  const std::vector<double> scales = scales_of(samples);
  std::vector<Observation> here;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const AllReduceSample& sample = samples[i];
    if (sample.grid.ranks == 1 || sample.grid.nodes > 1) continue;
    here.push_back({within_features(sample.grid, sample.bytes), sample.seconds, scales[i]});
  }
  model.within = fit_non_negative(here);
  std::vector<Observation> there;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const AllReduceSample& sample = samples[i];
    if (sample.grid.nodes == 1) continue;
    const double rest = sample.seconds - model.within.at(within_features(sample.grid, sample.bytes));
    there.push_back({between_features(sample.grid, sample.bytes), rest, scales[i]});
  }
  if (!there.empty()) model.between = fit_non_negative(there);
  return model;
}

double bus_bandwidth(int ranks, double bytes, double seconds) { return through_the_bus(ranks) * bytes / seconds; }

}  // namespace lockstep
