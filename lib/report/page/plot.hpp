// Curves over two axes as a figure of an HTML page, in SVG.
//
// Where a point lies follows from its numbers alone: PlotFrame says it, and draws with it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Numbers that are not finite, or beyond these, leave a gap in a curve.
inline constexpr double most_of_plot = 1e15;

struct PlotPoint {
  double x;
  double y;
};

// How far the numbers that a point stands for reach.
struct PlotSpread {
  double low;
  double high;
};

struct PlotSeries {
  enum class Shape : std::uint8_t { line, dotted_line };
  std::string name;
  int colour = 0;  // of the page's, counted round and round
  Shape shape = Shape::line;
  std::vector<PlotPoint> points;
  std::vector<PlotSpread> spread;  // of each point, drawn as a band; or none
};

// A vertical line, and what it stands for.
struct PlotMark {
  double x;
  std::string name;
  int colour = 0;
};

struct PlotAxis {
  std::string name;
  std::string unit = {};             // behind the numbers of its ticks: " %"
  std::optional<double> least = {};  // else as the points need
  std::optional<double> most = {};
  double least_step = 0;  // between ticks: 1 for what is counted
};

struct Plot {
  std::string title;
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
  std::vector<PlotMark> marks;
};

// Round numbers (1, 2 or 5 times a power of ten apart) from `low` to `high`, which is above it; at most `most`, two or
// more unless `least_step` keeps them apart.
struct Ticks {
  std::vector<double> values;
  int decimals = 0;  // that tell them apart; -1: too large or too small to write out
};
Ticks ticks_between(double low, double high, int most, double least_step = 0);
std::string tick_text(double value, const Ticks& ticks);

// The drawing's own units: 520 x 300, whatever its size on a screen.
class PlotFrame {
 public:
  static constexpr double width = 520;
  static constexpr double height = 300;
  static constexpr double left = 58;
  static constexpr double right = 14;
  static constexpr double top = 12;
  static constexpr double bottom = 46;

  explicit PlotFrame(const Plot& plot);

  double x_of(double x) const;
  double y_of(double y) const;
  const std::array<double, 2>& x_range() const { return x_range_; }
  const std::array<double, 2>& y_range() const { return y_range_; }

 private:
  std::array<double, 2> x_range_;
  std::array<double, 2> y_range_;
};

// Title, legend (of several series) and drawing. A plot without a point says so.
std::string html_plot(const Plot& plot);
// Several of them, beside each other where there is room.
std::string html_plots(const std::vector<Plot>& plots);

// "var(--c2)": a colour of the page, for what is drawn beside plots.
std::string plot_colour(int colour);

}  // namespace lockstep
