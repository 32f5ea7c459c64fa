#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "run/metrics.hpp"
#include "run/summary.hpp"
#include "search/page/search_plots.hpp"
#include "search/trial/trial_result.hpp"

namespace lockstep {
namespace {

constexpr double largest_loss = 4;  // of the median

bool is_loss(const Space& space) { return space.metric.value == TestMetric::loss; }

// A trial with a result or more.
PlotSeries curve_of(const SearchRecord& search, std::int64_t number) {
  const ReportedTrial& trial = search.trials.at(number);
  const RungResult& last = trial.results.back();
  const double length_of_step =
      static_cast<double>(last.length) / static_cast<double>(std::max<std::int64_t>(last.steps, 1));
  PlotSeries series;
  const std::filesystem::path folder = search.folder / fmt::format("trial-{}", number);
  const std::optional<Summary> summary = read_summary(folder);
  read_metrics(folder, [&](const NumberedLine& line) {
    if (!line.content || line.content->step >= last.steps) return;
    const std::optional<double> metric = metric_in(search.space.metric, line, summary && summary->keeps_ema);
    if (metric && std::isfinite(*metric))
      series.points.push_back({static_cast<double>(line.content->step) * length_of_step, *metric});
  });
  for (const RungResult& result : trial.results) {
    const double length = static_cast<double>(result.length);
    std::erase_if(series.points, [&](const PlotPoint& point) { return std::abs(point.x - length) < 1e-6 * length; });
    series.points.push_back({length, result.metric});
  }
  std::ranges::sort(series.points, {}, &PlotPoint::x);
  for (PlotPoint& point : series.points) point.y *= is_loss(search.space) ? 1 : 100;
  return series;
}

}  // namespace

std::optional<double> loss_limit(const SearchRecord& search) {
  std::vector<double> results;
  for (const auto& [number, trial] : search.trials) {
    if (trial.last.metric) results.push_back(*trial.last.metric);
  }
  if (results.empty() || !is_loss(search.space) || search.space.has_custom_loop()) return std::nullopt;
  std::ranges::sort(results);
  const double limit = largest_loss * results[results.size() / 2];
  return results.back() > limit ? std::optional(limit) : std::nullopt;
}

Plot metric_curves(const SearchRecord& search) {
  const std::string name = metric_name(search.space.metric);
  const std::string unit = choice_name(length_units, search.space.unit);
  Plot plot{fmt::format("{} over {}", name, unit),
            {unit, "", 0.0, static_cast<double>(search.space.searcher.max_length)},
            {name, is_loss(search.space) ? "" : " %", {}, loss_limit(search)},
            {},
            {}};
  std::vector<PlotSeries> best;
  for (const std::int64_t number : ranked_trials(search)) {
    if (search.trials.at(number).results.empty() || best.size() + plot.series.size() == most_curves) continue;
    PlotSeries series = curve_of(search, number);
    series.name = fmt::format("trial {}", number);
    series.color = static_cast<int>(best.size());
    series.shape = best.size() < colored_trials ? PlotSeries::Shape::dotted_line : PlotSeries::Shape::background;
    (best.size() < colored_trials ? best : plot.series).push_back(std::move(series));
  }
  plot.series.insert(plot.series.end(), best.begin(), best.end());  // drawn last
  for (const std::int64_t length : search.lengths) {
    plot.marks.push_back({static_cast<double>(length), fmt::format("rung after {}", length), 7});
  }
  return plot;
}

}  // namespace lockstep
