#include "search/page/importance.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "base/random.hpp"

namespace lockstep {
namespace {

constexpr double outside = 0.025;  // of the bootstrap samples, on each side of the interval

// From 1; equal values have the mean of their ranks.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t index) { return values[index]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t place = first; place < end; ++place) {
      ranks[order[place]] = static_cast<double>(first + end + 1) / 2;
    }
  }
  return ranks;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Fit {
  double share = 0;  // adjusted
  double correlation = 0;
};

double adjusted(double share, double trials, double coefficients) {
  const double left = trials - coefficients - 1;
  return left <= 0 ? 0 : std::clamp(1 - (1 - share) * (trials - 1) / left, 0.0, 1.0);
}

// Nothing if all values or all results are equal.
std::optional<Fit> fit_numbers(std::span<const double> values, std::span<const double> results) {
  const std::vector<double> x = ranks_of(values);
  const std::vector<double> y = ranks_of(results);
  const double mean = mean_of(x);  // that of y, too
  double xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  const double correlation = xy / std::sqrt(xx * yy);
  return Fit{adjusted(correlation * correlation, static_cast<double>(x.size()), 1), correlation};
}

// `groups`: of each trial, counted from 0.
std::optional<Fit> fit_groups(std::span<const double> groups, std::span<const double> results) {
  const std::vector<double> y = ranks_of(results);
  const double mean = mean_of(y);
  struct Group {
    double count = 0;
    double sum = 0;
  };
  std::map<double, Group> found;
  double all = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    Group& group = found[groups[i]];
    ++group.count;
    group.sum += y[i] - mean;
    all += (y[i] - mean) * (y[i] - mean);
  }
  if (all == 0 || found.size() < 2) return std::nullopt;
  double between = 0;
  for (const auto& [number, group] : found) between += group.sum * group.sum / group.count;
  return Fit{adjusted(between / all, static_cast<double>(y.size()), static_cast<double>(found.size() - 1))};
}

using FitTrials = std::optional<Fit> (*)(std::span<const double>, std::span<const double>);

std::optional<Importance> with_interval(std::span<const double> values, std::span<const double> results,
                                        FitTrials fit) {
  const std::size_t trials = results.size();
  const std::optional<Fit> whole = trials < least_trials ? std::nullopt : fit(values, results);
  if (!whole) return std::nullopt;
  std::vector<double> shares;
  std::vector<double> x(trials);
  std::vector<double> y(trials);
  for (std::int64_t sample = 0; sample < bootstrap_samples; ++sample) {
    for (std::size_t i = 0; i < trials; ++i) {
      const auto bits = philox(0, stream_counter(Stream::search, sample), i);
      const std::size_t drawn = (std::uint64_t{bits[0]} << 32 | bits[1]) % trials;
      x[i] = values[drawn];
      y[i] = results[drawn];
    }
    shares.push_back(fit(x, y).value_or(Fit{}).share);
  }
  std::ranges::sort(shares);
  const auto at = [&](double share) {
    return shares[static_cast<std::size_t>(share * static_cast<double>(shares.size() - 1))];
  };
  return Importance{whole->share, {at(outside), at(1 - outside)}, whole->correlation};
}

}  // namespace

std::optional<Importance> importance_of_numbers(std::span<const double> values, std::span<const double> results) {
  return with_interval(values, results, fit_numbers);
}

std::optional<Importance> importance_of_categories(std::span<const std::string> values,
                                                   std::span<const double> results) {
  std::map<std::string, double> known;
  std::vector<double> groups;
  for (const std::string& value : values) {
    groups.push_back(known.try_emplace(value, static_cast<double>(known.size())).first->second);
  }
  if (results.size() < 2 * known.size()) return std::nullopt;
  return with_interval(groups, results, fit_groups);
}

}  // namespace lockstep
