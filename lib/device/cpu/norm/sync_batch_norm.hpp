// From a rank's statistics of its micro-batch to the norm's table, alone or together with the other ranks of a group
// (synchronized batch norm).
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/norm/norm_table.hpp"
#include "device/cpu/norm/piece_sums.hpp"
#include "device/norm_group.hpp"

namespace lockstep::cpu {

struct Channels {
  std::int64_t first, end;
};

// Two values per channel from each rank of a group.
class GroupValues {
 public:
  GroupValues(const CpuContext& context, NormGroup& group, std::int64_t channels)
      : group_(group),
        values_(static_cast<std::size_t>(2 * channels)),
        memory_(scratch_tensor(context.arena, (group.size() + 1) * 2 * channels * std::int64_t{sizeof(double)})) {}

  int ranks() const { return group_.size(); }
  // Sets this rank's values.
  void set(std::int64_t channel, double first, double second) {
    all()[2 * channel] = first;
    all()[2 * channel + 1] = second;
  }
  // Collective within the group. Call once all values are set.
  void gather() { group_.all_gather({all(), values_}, {all() + values_, values_ * static_cast<std::size_t>(ranks())}); }
  double first(int rank, std::int64_t channel) const { return of(rank)[2 * channel]; }
  double second(int rank, std::int64_t channel) const { return of(rank)[2 * channel + 1]; }

 private:
  double* all() const { return reinterpret_cast<double*>(memory_.data()); }  // own values, then each rank's
  const double* of(int rank) const { return all() + values_ * (1 + static_cast<std::size_t>(rank)); }

  NormGroup& group_;
  std::size_t values_;
  Tensor memory_;
};

// Combines all ranks' values of a channel, `count` values each. Adds in rank order, so all ranks get the same bits.
inline Spread spread_of(const GroupValues& spreads, std::int64_t channel, double count) {
  const double ranks = spreads.ranks();
  double mean = 0;
  for (int rank = 0; rank < spreads.ranks(); ++rank) mean += spreads.first(rank, channel) / ranks;
  double variance = 0;
  for (int rank = 0; rank < spreads.ranks(); ++rank) {
    const double difference = spreads.first(rank, channel) - mean;
    variance += (spreads.second(rank, channel) + difference * difference) / ranks;
  }
  return {mean, variance, count * ranks};
}

// `local_statistics` returns the statistics of this rank's micro-batch. With a group, `channels` must be all channels
// of the norm.
template <typename SpreadOf>
void set_forward_from_ranks(const CpuContext& context, Channels channels, const BatchNorm& norm, const NormTable& table,
                            const SpreadOf& local_statistics) {
  if (norm.saved.group == nullptr) {
    for (std::int64_t channel = channels.first; channel < channels.end; ++channel) {
      table.set_from_batch(channel, local_statistics(channel), norm);
    }
    return;
  }
  GroupValues spreads(context, *norm.saved.group, table.channels());
  double count = 0;
  for (std::int64_t channel = channels.first; channel < channels.end; ++channel) {
    const Spread spread = local_statistics(channel);
    spreads.set(channel, spread.mean, spread.variance);
    count = spread.count;
  }
  spreads.gather();
  for (std::int64_t channel = channels.first; channel < channels.end; ++channel) {
    table.set_from_batch(channel, spread_of(spreads, channel, count), norm);
  }
}

// The same for backward. This computes the gradients of scale and shift of this rank's micro-batch. The all-reduce adds
// those of the other ranks.
template <typename SumsOf>
void set_backward_from_ranks(const CpuContext& context, Channels channels, double count, const NormGradient& gradient,
                             const NormTable& table, const SumsOf& sums_of) {
  const auto* const inverse_deviation = gradient.inverse_deviation.as<float>();
  const auto put_gradients = [&](std::int64_t channel, const GradientSums& sums) {
    put(gradient.d_scale, channel, sums.dz_x * static_cast<double>(inverse_deviation[channel]), gradient.accumulate);
    put(gradient.d_shift, channel, sums.dz, gradient.accumulate);
  };
  if (gradient.group == nullptr) {
    for (std::int64_t channel = channels.first; channel < channels.end; ++channel) {
      const GradientSums sums = sums_of(channel);
      table.set_backward(channel, sums, count, inverse_deviation[channel]);
      put_gradients(channel, sums);
    }
    return;
  }
  GroupValues parts(context, *gradient.group, table.channels());
  for (std::int64_t channel = channels.first; channel < channels.end; ++channel) {
    const GradientSums sums = sums_of(channel);
    parts.set(channel, sums.dz, sums.dz_x);
    put_gradients(channel, sums);
  }
  parts.gather();
  for (std::int64_t channel = channels.first; channel < channels.end; ++channel) {
    GradientSums sums{0, 0};
    for (int rank = 0; rank < parts.ranks(); ++rank) {
      sums.dz += parts.first(rank, channel);
      sums.dz_x += parts.second(rank, channel);
    }
    table.set_backward(channel, sums, count * parts.ranks(), inverse_deviation[channel]);
  }
}

}  // namespace lockstep::cpu
