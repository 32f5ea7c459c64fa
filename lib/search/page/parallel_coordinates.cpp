#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/number.hpp"
#include "report/page/html.hpp"
#include "search/page/search_plots.hpp"
#include "search/search_text.hpp"

namespace lockstep {
namespace {

// In units of the drawing.
constexpr double axis_spacing = 132;
constexpr double side = 78;
constexpr double head = 40;
constexpr double foot = 300;
constexpr double failed_height = 28;  // of failed trials, below the metric's axis

using Kind = Hyperparameter::Kind;

double height_of(double share) { return foot - std::clamp(share, 0.0, 1.0) * (foot - head); }

std::string category_text(const OptionWord& word, const std::string& option) {
  return setting_text(word.empty() ? std::vector<OptionWord>() : std::vector{word}, option);
}

// The place of a trial's value on the axis of a parameter, from 0 to 1.
double share_of(const Hyperparameter& parameter, const ReportedTrial& trial) {
  const std::string text = setting_text(trial.last.settings, parameter.option);
  if (parameter.kind == Kind::listed) {
    const auto found = std::ranges::find_if(
        parameter.words, [&](const OptionWord& word) { return category_text(word, parameter.option) == text; });
    return static_cast<double>(found - parameter.words.begin()) / static_cast<double>(parameter.words.size() - 1);
  }
  const double number = parse_number<double>(text, {-1e300, 1e300}).value_or(0);
  const double place =
      parameter.kind == Kind::logarithmic ? std::log(std::max(number, 1e-300)) / std::log(parameter.base) : number;
  return (place - parameter.least) / (parameter.most - parameter.least);
}

struct AxisLabel {
  double share;
  std::string text;
};

std::vector<AxisLabel> labels_of(const Hyperparameter& parameter) {
  std::vector<AxisLabel> labels;
  if (parameter.kind == Kind::listed) {
    constexpr std::size_t most = 14;
    const std::size_t each = (parameter.words.size() + most - 1) / most;
    for (std::size_t place = 0; place < parameter.words.size(); place += each) {
      labels.push_back({static_cast<double>(place) / static_cast<double>(parameter.words.size() - 1),
                        category_text(parameter.words[place], parameter.option)});
    }
    return labels;
  }
  for (const double share : {0.0, 0.5, 1.0}) {
    const double place = parameter.least + share * (parameter.most - parameter.least);
    labels.push_back(
        {share, fmt::format("{:.3g}", parameter.kind == Kind::logarithmic ? std::pow(parameter.base, place) : place)});
  }
  return labels;
}

// The metric's axis has the better end at the top.
struct MetricAxis {
  double worst = 0;
  double best = 1;

  MetricAxis(const SearchRecord& search, std::span<const std::int64_t> ranked) {
    std::vector<double> results;
    for (const std::int64_t number : ranked) {
      const TrialRecord& trial = search.trials.at(number).last;
      if (trial.code == 0 && trial.metric) results.push_back(*trial.metric);
    }
    if (results.empty()) return;
    best = results.front();
    worst = std::min(results.back(), loss_limit(search).value_or(results.back()));
    if (worst == best) worst += (search.space.smaller_is_better ? 1 : -1) * std::max(0.1 * std::abs(best), 1e-9);
  }
  double share_of(double metric) const { return (metric - worst) / (best - worst); }
};

std::string axis_svg(double x, const std::string& name, std::span<const AxisLabel> labels) {
  constexpr std::string_view outlined =
      "fill: var(--text); paint-order: stroke; stroke: var(--panel); stroke-width: 4px";
  std::string svg = fmt::format(
      "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>\n<text x=\"{0:.1f}\" y=\"18\" "
      "text-anchor=\"middle\" style=\"font-weight: 600\">{3}<title>{4}</title></text>\n",
      x, head, foot, escaped(shortened(name, 19)), escaped(name));
  for (const AxisLabel& label : labels) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" style=\"{}\">{}<title>{}</title></text>\n", x + 6,
                       height_of(label.share) + 4.5, outlined, escaped(shortened(label.text, 12)), escaped(label.text));
  }
  return svg;
}

// `rank`: 0 for the best trial, 1 for the worst.
std::string trial_svg(const SearchRecord& search, std::span<const RatedParameter> parameters, const MetricAxis& axis,
                      std::int64_t number, double rank) {
  const ReportedTrial& trial = search.trials.at(number);
  const bool has_failed = trial.last.code != 0;
  if (!has_failed && !trial.last.metric) return "";
  std::string points;
  double x = side;
  for (const RatedParameter& rated : parameters) {
    points += fmt::format("{:.1f},{:.1f} ", x, height_of(share_of(*rated.parameter, trial)));
    x += axis_spacing;
  }
  const double end = has_failed ? foot + failed_height : height_of(axis.share_of(*trial.last.metric));
  const std::string paint =
      has_failed ? "stroke: var(--quiet); stroke-width: 1.4; stroke-dasharray: 2 4"
                 : fmt::format("stroke: color-mix(in srgb, var(--c1) {:.0f}%, var(--c0)); stroke-width: {}", 100 * rank,
                               search.best == number ? "4" : "1.6");
  return fmt::format(
      "<polyline class=\"series\" stroke=\"var(--c0)\" style=\"{}\" points=\"{}{:.1f},{:.1f}\"><title>trial {}: "
      "{}</title></polyline>\n",
      paint, points, x, end, number, has_failed ? "failed" : metric_text(search.space, *trial.last.metric));
}

}  // namespace

std::string parallel_coordinates_html(const SearchRecord& search, std::span<const RatedParameter> parameters) {
  const std::span<const RatedParameter> shown = parameters.first(std::min(parameters.size(), most_axes));
  std::vector<std::int64_t> ranked = ranked_trials(search);
  ranked.resize(std::min(ranked.size(), most_lines));
  const MetricAxis axis(search, ranked);
  const auto has_result = [&](std::int64_t number) {
    return search.trials.at(number).last.code == 0 && search.trials.at(number).last.metric.has_value();
  };
  const auto results = std::ranges::count_if(ranked, has_result);
  const bool has_failed =
      std::ranges::any_of(ranked, [&](std::int64_t number) { return search.trials.at(number).last.code != 0; });
  std::string svg;
  for (std::size_t place = ranked.size(); place-- > 0;) {  // the best trial is drawn last
    const double rank = results < 2 ? 0 : static_cast<double>(place) / static_cast<double>(results - 1);
    svg += trial_svg(search, shown, axis, ranked[place], std::min(rank, 1.0));
  }
  double x = side;
  for (const RatedParameter& rated : shown) {
    svg += axis_svg(x, rated.parameter->option, labels_of(*rated.parameter));
    x += axis_spacing;
  }
  std::vector<AxisLabel> labels;
  if (results > 0) labels = {{0, metric_text(search.space, axis.worst)}, {1, metric_text(search.space, axis.best)}};
  svg += axis_svg(x, metric_name(search.space.metric), labels);
  if (has_failed) svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">failed</text>\n", x + 6, foot + failed_height + 4.5);
  const double width = x + side + 8;
  return fmt::format(
      "<figure><div class=\"scroll\"><svg style=\"min-width: {:.0f}px; max-width: {:.0f}px\" viewBox=\"0 0 {} {}\" "
      "role=\"img\" aria-label=\"Parallel coordinates\">\n{}</svg></div></figure>\n",
      width, 1.6 * width, width, foot + failed_height + 12, svg);
}

std::string importance_html(std::span<const RatedParameter> parameters) {
  constexpr double left = 150;
  constexpr double right = 20;
  constexpr double row = 30;
  constexpr double width = 520;
  const auto x_of = [&](double share) { return left + share * (width - left - right); };
  std::string svg;
  double y = 8;
  for (const RatedParameter& rated : parameters) {
    if (!rated.importance) continue;
    const Importance& found = *rated.importance;
    const std::string& name = rated.parameter->option;
    svg += fmt::format(
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}<title>{}</title></text>\n<rect fill=\"var(--c0)\" "
        "opacity=\".55\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\"/>\n",
        left - 8, y + 14, escaped(shortened(name, 18)), escaped(name), left, y + 2, x_of(found.share) - left);
    svg += fmt::format(
        "<path fill=\"none\" stroke=\"var(--text)\" stroke-width=\"1.5\" d=\"M{0:.1f} {2:.1f}v8m0 -4H{1:.1f}m0 "
        "-4v8\"/>\n",
        x_of(found.interval.low), x_of(found.interval.high), y + 6);
    y += row;
  }
  std::string grid;
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    grid += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"4\" y2=\"{1}\"/>\n<text x=\"{0:.1f}\" "
        "y=\"{2}\" text-anchor=\"middle\">{3}</text>\n",
        x_of(share), y, y + 18, share);
  }
  return fmt::format(
      "<figure><svg style=\"max-width: 46rem\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"Importance\">\n{}{}</svg>"
      "</figure>\n",
      width, y + 28, grid, svg);
}

}  // namespace lockstep
