#include "report/page/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/page/html.hpp"

namespace lockstep {
namespace {

constexpr int colors = 8;
constexpr std::array<const char*, 3> dashes{"", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""};

bool is_drawable(double number) { return std::isfinite(number) && std::abs(number) <= max_plot_value; }
bool is_drawable(const PlotPoint& point) { return is_drawable(point.x) && is_drawable(point.y); }

// The minimum and maximum of all added numbers.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double number) {
    low = std::min(low, number);
    high = std::max(high, number);
  }
};

std::array<double, 2> range_of(const Extent& extent, const PlotAxis& axis, double margin) {
  const bool is_empty = extent.low > extent.high;
  const double span = is_empty ? 0 : extent.high - extent.low;
  double low = axis.least.value_or(is_empty ? 0 : extent.low - margin * span);
  double high = axis.most.value_or(is_empty ? 1 : extent.high + margin * span);
  if (high - low <= 1e-9 * std::max(std::abs(low), std::abs(high)) || high <= low) {
    const double room = std::max(0.5 * std::abs(high), 0.5);
    if (!axis.least || axis.most) low -= room;
    if (!axis.most) high = std::max(high, low) + room;
  }
  return {low, high};
}

std::string points_text(const PlotFrame& frame, const std::vector<PlotPoint>& points) {
  std::string text;
  for (const PlotPoint& point : points) {
    text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? "" : " ", frame.x_of(point.x), frame.y_of(point.y));
  }
  return text;
}

// Consecutive points without a gap, and their spreads.
struct Polyline {
  std::vector<PlotPoint> points;
  std::vector<PlotPoint> outline;  // of the spread: the upper edge, then the lower edge backward
};

std::vector<Polyline> polylines_of(const PlotSeries& series) {
  std::vector<Polyline> lines(1);
  std::vector<PlotPoint> lower;
  const auto close = [&] {
    lines.back().outline.insert(lines.back().outline.end(), lower.rbegin(), lower.rend());
    lower.clear();
  };
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const PlotPoint& point = series.points[i];
    if (!is_drawable(point)) {
      close();
      if (!lines.back().points.empty()) lines.emplace_back();
      continue;
    }
    lines.back().points.push_back(point);
    if (i >= series.spread.size()) continue;
    const PlotBand& spread = series.spread[i];
    if (!is_drawable(spread.low) || !is_drawable(spread.high)) continue;
    lines.back().outline.push_back({point.x, spread.high});
    lower.push_back({point.x, spread.low});
  }
  close();
  return lines;
}

// An interval may extend below the lower end of an axis.
std::vector<PlotPoint> within(const PlotFrame& frame, std::vector<PlotPoint> points) {
  for (PlotPoint& point : points) point.y = std::clamp(point.y, frame.y_range()[0], frame.y_range()[1]);
  return points;
}

std::string series_svg(const PlotFrame& frame, const PlotSeries& series) {
  const bool is_background = series.shape == PlotSeries::Shape::background;
  const std::string color = is_background ? "var(--quiet)" : plot_color(series.color);
  const bool has_dots = series.shape == PlotSeries::Shape::dotted_line;
  std::string svg;
  for (const Polyline& drawn : polylines_of(series)) {
    if (drawn.points.empty()) continue;
    if (drawn.outline.size() > 2) {
      svg += fmt::format("<polygon class=\"spread\" fill=\"{}\" points=\"{}\"/>\n", color,
                         points_text(frame, within(frame, drawn.outline)));
    }
    const char* dash = dashes.at(static_cast<std::size_t>(series.color / colors) % dashes.size());
    svg +=
        fmt::format("<polyline class=\"series\" stroke=\"{}\"{} points=\"{}\"/>\n", color,
                    is_background ? " style=\"stroke-width: 1; opacity: .5\"" : dash, points_text(frame, drawn.points));
    if (!has_dots && drawn.points.size() > 1) continue;
    for (const PlotPoint& point : drawn.points) {
      svg +=
          fmt::format("<circle fill=\"{}\" r=\"3.2\" cx=\"{:.1f}\" cy=\"{:.1f}\"><title>{}: {:.6g}</title></circle>\n",
                      color, frame.x_of(point.x), frame.y_of(point.y), escaped(series.name), point.y);
    }
  }
  return svg;
}

// Of the series whose place among those with bars is `place`. Bars stand on the axis.
std::string bars_svg(const PlotFrame& frame, const PlotSeries& series, int place, int places) {
  constexpr double filled = 0.8;  // of the distance between two whole numbers
  const double width = filled / places;
  const double foot = frame.y_of(frame.y_range()[0]);
  std::string svg;
  for (const PlotPoint& point : series.points) {
    if (!is_drawable(point)) continue;
    const double left = point.x - filled / 2 + place * width;
    svg += fmt::format(
        "<rect fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}: "
        "{:.6g}</title></rect>\n",
        plot_color(series.color), frame.x_of(left), frame.y_of(point.y), frame.x_of(left + width) - frame.x_of(left),
        foot - frame.y_of(point.y), escaped(series.name), point.y);
  }
  return svg;
}

std::string all_series_svg(const PlotFrame& frame, const Plot& plot) {
  const auto has_bars = [](const PlotSeries& series) { return series.shape == PlotSeries::Shape::bars; };
  const auto places = static_cast<int>(std::ranges::count_if(plot.series, has_bars));
  int place = 0;
  std::string svg;
  for (const PlotSeries& series : plot.series) {
    svg += has_bars(series) ? bars_svg(frame, series, place++, places) : series_svg(frame, series);
  }
  return svg;
}

std::string axes_svg(const PlotFrame& frame, const Plot& plot) {
  constexpr double foot = PlotFrame::height - PlotFrame::bottom;
  constexpr double end = PlotFrame::width - PlotFrame::right;
  std::string svg;
  const Ticks of_y = ticks_between(frame.y_range()[0], frame.y_range()[1], 8);
  for (const double y : of_y.values) {
    svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", PlotFrame::left, end,
                       frame.y_of(y), frame.y_of(y));
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}{}</text>\n", PlotFrame::left - 7,
                       frame.y_of(y) + 4.5, tick_text(y, of_y), escaped(plot.y.unit));
  }
  const Ticks of_x = ticks_between(frame.x_range()[0], frame.x_range()[1], 8, plot.x.least_step);
  for (const double x : of_x.values) {
    svg += fmt::format(R"(<line class="axis" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)", frame.x_of(x), foot,
                       foot + 4);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}{}</text>\n", frame.x_of(x), foot + 19,
                       tick_text(x, of_x), escaped(plot.x.unit));
  }
  svg +=
      fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\n", PlotFrame::left, end, foot, foot);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (PlotFrame::left + end) / 2,
                     PlotFrame::height - 8, escaped(plot.x.name));
  return svg;
}

std::string marks_svg(const PlotFrame& frame, const Plot& plot) {
  std::string svg;
  for (const PlotMark& mark : plot.marks) {
    if (!is_drawable(mark.x) || mark.x < frame.x_range()[0] || mark.x > frame.x_range()[1]) continue;
    svg += fmt::format(
        "<line class=\"mark\" stroke=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"><title>{}</title></line>\n",
        plot_color(mark.color), frame.x_of(mark.x), frame.x_of(mark.x), PlotFrame::top,
        PlotFrame::height - PlotFrame::bottom, escaped(mark.name));
  }
  return svg;
}

std::string legend_of(const Plot& plot) {
  std::string html = "<div class=\"legend\">";
  for (const PlotSeries& series : plot.series) {
    if (series.shape == PlotSeries::Shape::background) continue;
    const bool has_bars = series.shape == PlotSeries::Shape::bars;
    const double thickness = has_bars ? 10 : series.shape == PlotSeries::Shape::dotted_line ? 3 : 2;
    html += fmt::format(
        "<span><svg class=\"swatch\" viewBox=\"0 0 28 12\" aria-hidden=\"true\"><line x1=\"0\" x2=\"28\" y1=\"6\" "
        "y2=\"6\" stroke=\"{}\" stroke-width=\"{}\"{}/></svg>{}</span>",
        plot_color(series.color), thickness, dashes.at(static_cast<std::size_t>(series.color / colors) % dashes.size()),
        escaped(series.name));
  }
  return html + "</div>\n";
}

}  // namespace

Ticks ticks_between(double low, double high, int most, double least_step) {
  const double finest = std::max((high - low) / std::max(most - 1, 1), least_step);
  const double power = std::pow(10, std::floor(std::log10(finest)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= finest * (1 - 1e-9)) step = factor * power;
  }
  Ticks ticks;
  const double first = std::ceil(low / step - 1e-9);
  const double last = std::floor(high / step + 1e-9);
  for (double place = first; place <= last && std::ssize(ticks.values) < most; ++place) {
    ticks.values.push_back(place == 0 ? 0 : place * step);
  }
  const double size = std::max(std::abs(low), std::abs(high));
  const int decimals = static_cast<int>(std::max(0.0, -std::floor(std::log10(step) + 1e-9)));
  ticks.decimals = size >= 1e6 || decimals > 4 ? -1 : decimals;
  return ticks;
}

std::string tick_text(double value, const Ticks& ticks) {
  return ticks.decimals < 0 ? fmt::format("{:.3g}", value) : fmt::format("{:.{}f}", value, ticks.decimals);
}

PlotFrame::PlotFrame(const Plot& plot) {
  Extent x;
  Extent y;
  for (const PlotSeries& series : plot.series) {
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      if (!is_drawable(series.points[i])) continue;
      const double beside = series.shape == PlotSeries::Shape::bars ? 0.5 : 0;
      x.add(series.points[i].x - beside);
      x.add(series.points[i].x + beside);
      y.add(series.points[i].y);
      if (i >= series.spread.size()) continue;
      if (is_drawable(series.spread[i].low)) y.add(series.spread[i].low);
      if (is_drawable(series.spread[i].high)) y.add(series.spread[i].high);
    }
  }
  x_range_ = range_of(x, plot.x, 0);
  y_range_ = range_of(y, plot.y, 0.05);
}

double PlotFrame::x_of(double x) const {
  return left + (x - x_range_[0]) / (x_range_[1] - x_range_[0]) * (width - left - right);
}

double PlotFrame::y_of(double y) const {
  return height - bottom - (y - y_range_[0]) / (y_range_[1] - y_range_[0]) * (height - top - bottom);
}

std::string html_plot(const Plot& plot) {
  const bool has_points = std::ranges::any_of(plot.series, [](const PlotSeries& series) {
    return std::ranges::any_of(series.points, [](const PlotPoint& point) { return is_drawable(point); });
  });
  const std::string head = fmt::format("<figure>\n<figcaption>{}</figcaption>\n", escaped(plot.title));
  if (!has_points) return head + "<p class=\"quiet\">There are no measurements yet.</p>\n</figure>\n";
  const PlotFrame frame(plot);
  std::string svg = axes_svg(frame, plot) + marks_svg(frame, plot);
  svg += all_series_svg(frame, plot);
  const std::string legend = plot.series.size() > 1 ? legend_of(plot) : "";
  return fmt::format("{}{}<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n</figure>\n", head,
                     legend, PlotFrame::width, PlotFrame::height, escaped(plot.title), svg);
}

std::string html_plots(const std::vector<Plot>& plots) {
  std::string html = "<div class=\"plots\">\n";
  for (const Plot& plot : plots) html += html_plot(plot);
  return html + "</div>\n";
}

std::string plot_color(int color) { return fmt::format("var(--c{})", color % colors); }

}  // namespace lockstep
