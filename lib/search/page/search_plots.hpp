// The figures of a search's page.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/page/plot.hpp"
#include "search/page/importance.hpp"
#include "search/page/search_record.hpp"

namespace lockstep {

// Losses above four times the median of the last results are not drawn at their place. Nothing if there are none.
std::optional<double> loss_limit(const SearchRecord& search);

inline constexpr std::size_t colored_trials = 7;  // the best ones
inline constexpr std::size_t most_curves = 200;
// The metric over the length, by trial, from their metrics.jsonl and the search's results, with the ends of rungs.
Plot metric_curves(const SearchRecord& search);

// A hyperparameter and its importance; nothing if there are too few trials.
struct RatedParameter {
  const Hyperparameter* parameter;
  std::optional<Importance> importance;
};

inline constexpr std::size_t most_axes = 12;  // of parallel coordinates, the metric's not counted
inline constexpr std::size_t most_lines = 500;
// An axis for each of the first parameters, one for the metric, and a line for each of the best trials.
std::string parallel_coordinates_html(const SearchRecord& search, std::span<const RatedParameter> parameters);

// A bar with its interval for each parameter that has an importance.
std::string importance_html(std::span<const RatedParameter> parameters);

}  // namespace lockstep
