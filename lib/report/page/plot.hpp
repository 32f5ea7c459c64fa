// Plots of curves over two axes, as SVG figures of an HTML page.
//
// A point's position follows only from its numbers. PlotFrame computes it and is used for drawing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Numbers that are not finite, or larger in magnitude than this, leave a gap in a curve.
inline constexpr double max_plot_value = 1e15;

struct PlotPoint {
  double x;
  double y;
};

// The range of the numbers that a point represents.
struct PlotBand {
  double low;
  double high;
};

struct PlotSeries {
  // background: thin, gray, not in the legend. bars: for counts at whole numbers; those of several series side by side.
  enum class Shape : std::uint8_t { line, dotted_line, background, bars };
  std::string name;
  int color = 0;  // index into the page's palette, modulo its size
  Shape shape = Shape::line;
  std::vector<PlotPoint> points;
  std::vector<PlotBand> spread;  // one per point, drawn as a band; or empty
};

// A vertical line and its label.
struct PlotMark {
  double x;
  std::string name;
  int color = 0;
};

struct PlotAxis {
  std::string name;
  std::string unit = {};             // appended to tick labels: " %"
  std::optional<double> least = {};  // default: as the points require
  std::optional<double> most = {};
  double least_step = 0;  // between ticks; 1 for counts
};

struct Plot {
  std::string title;
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
  std::vector<PlotMark> marks;
};

// Round numbers from `low` to `high` with a spacing of 1, 2 or 5 times a power of ten. `high` is larger than `low`. At
// most `most` numbers, and at least two unless `least_step` forbids it.
struct Ticks {
  std::vector<double> values;
  int decimals = 0;  // needed to distinguish the labels; -1: scientific notation
};
Ticks ticks_between(double low, double high, int most, double least_step = 0);
std::string tick_text(double value, const Ticks& ticks);

// Coordinates of the drawing: 520 x 300 units, whatever its size on a screen.
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

// Title, legend (for several series) and drawing. A plot without points says so.
std::string html_plot(const Plot& plot);
// Several plots, side by side if there is room.
std::string html_plots(const std::vector<Plot>& plots);

// "var(--c2)": a color of the page's palette, for drawings beside plots.
std::string plot_color(int color);

}  // namespace lockstep
