#include "search/space/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

// floor(log(number) / log(divisor)) + 1, without the rounding of logarithms.
std::int64_t levels(std::int64_t number, double divisor) {
  std::int64_t count = 1;
  double power = divisor;
  while (power <= static_cast<double>(number)) {
    power *= divisor;
    ++count;
  }
  return count;
}

std::vector<std::int64_t> rung_counts(const SearcherOptions& options) {
  if (!has_rungs(options.kind)) return {1};
  const std::int64_t most = std::min(
      {options.max_rungs, levels(options.max_length, options.divisor), levels(options.max_trials, options.divisor)});
  std::int64_t least = most;
  if (options.kind == SearcherKind::adaptive_asha && options.mode == BracketMode::standard) least = (most - 1) / 2 + 1;
  if (options.kind == SearcherKind::adaptive_asha && options.mode == BracketMode::conservative) least = 1;
  std::vector<std::int64_t> counts;
  for (std::int64_t count = most; count >= least; --count) counts.push_back(count);
  return counts;
}

std::vector<std::int64_t> lengths_of(std::int64_t rungs, const SearcherOptions& options) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t rung = 0; rung < rungs; ++rung) {
    const double share = std::pow(options.divisor, static_cast<double>(rungs - rung - 1));
    const auto length = static_cast<std::int64_t>(static_cast<double>(options.max_length) / share);
    lengths.push_back(std::max<std::int64_t>(length, 1));
  }
  return lengths;
}

}  // namespace

std::vector<Bracket> brackets_of(const SearcherOptions& options) {
  const std::vector<std::int64_t> counts = rung_counts(options);
  const auto number = static_cast<std::int64_t>(counts.size());
  std::vector<double> weights;
  double sum = 0;
  for (const std::int64_t rungs : counts) {
    weights.push_back(std::pow(options.divisor, static_cast<double>(rungs - 1)) / static_cast<double>(rungs));
    sum += weights.back();
  }
  std::vector<Bracket> brackets;
  std::int64_t given = 0;
  for (std::size_t index = 0; index < counts.size(); ++index) {
    const auto share = static_cast<std::int64_t>(weights[index] / sum * static_cast<double>(options.max_trials));
    brackets.push_back({lengths_of(counts[index], options), std::max<std::int64_t>(share, 1)});
    given += brackets.back().trials;
  }
  brackets.front().trials += std::max<std::int64_t>(options.max_trials - given, 0);
  for (std::int64_t index = 0; index < number; ++index) {
    Bracket& bracket = brackets[static_cast<std::size_t>(index)];
    const std::int64_t share =
        options.max_concurrent_trials / number + (index < options.max_concurrent_trials % number ? 1 : 0);
    bracket.concurrent = std::clamp<std::int64_t>(share, 1, bracket.trials);
    if (options.kind == SearcherKind::successive_halving) bracket.concurrent = bracket.trials;
  }
  return brackets;
}

std::vector<std::int64_t> expected_trials(const Bracket& bracket, double divisor) {
  std::vector<std::int64_t> trials = {bracket.trials};
  while (trials.size() < bracket.lengths.size()) {
    const auto share = static_cast<std::int64_t>(static_cast<double>(trials.back()) / divisor);
    trials.push_back(std::max<std::int64_t>(share, 1));
  }
  return trials;
}

}  // namespace lockstep
