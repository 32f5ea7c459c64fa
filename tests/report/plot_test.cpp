// Where a curve lies on its drawing follows from its numbers.
#include "report/page/plot.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::plot_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Plot plot_of(std::vector<PlotPoint> points) {
  return {"title",
          {"x", "", 0.0, {}},
          {"y", "", 0.0, {}},
          {{"series", 0, PlotSeries::Shape::line, std::move(points), {}}},
          {}};
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(PlotTest, a_points_place_comes_from_its_numbers) {
  const Plot plot = plot_of({{0, 0}, {4, 8}});
  const PlotFrame frame(plot);
  EXPECT_DOUBLE_EQ(frame.x_of(0), PlotFrame::left);
  EXPECT_DOUBLE_EQ(frame.x_of(4), PlotFrame::width - PlotFrame::right);
  EXPECT_DOUBLE_EQ(frame.x_of(1), PlotFrame::left + (PlotFrame::width - PlotFrame::right - PlotFrame::left) / 4);
  EXPECT_DOUBLE_EQ(frame.y_of(0), PlotFrame::height - PlotFrame::bottom);
  EXPECT_DOUBLE_EQ(frame.y_of(8.4), PlotFrame::top);  // a twentieth of room above the largest
  EXPECT_LT(frame.y_of(8), frame.y_of(7));
  EXPECT_THAT(html_plot(plot), HasSubstr(fmt::format("points=\"{:.1f},{:.1f} {:.1f},{:.1f}\"", frame.x_of(0),
                                                     frame.y_of(0), frame.x_of(4), frame.y_of(8))));
}

TEST(PlotTest, ticks_are_round_numbers_within_the_range) {
  EXPECT_THAT(ticks_between(0, 10, 6).values, ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(ticks_between(-3, 7, 6).values, ElementsAre(-2, 0, 2, 4, 6));
  EXPECT_THAT(ticks_between(0.1, 0.35, 4).values,
              ElementsAre(testing::DoubleEq(0.1), testing::DoubleEq(0.2), testing::DoubleEq(0.3)));
  EXPECT_EQ(tick_text(0.1, ticks_between(0.1, 0.35, 4)), "0.1");
  EXPECT_EQ(tick_text(0.0005, ticks_between(0, 0.002, 6)), "0.0005");
  EXPECT_EQ(tick_text(2e-7, ticks_between(0, 1e-6, 6)), "2e-07");
  EXPECT_EQ(tick_text(2e9, ticks_between(0, 1e10, 6)), "2e+09");
}

TEST(PlotTest, ticks_of_what_is_counted_are_whole) {
  EXPECT_THAT(ticks_between(1, 2, 8, 1).values, ElementsAre(1, 2));
  EXPECT_EQ(tick_text(2, ticks_between(1, 2, 8, 1)), "2");
  EXPECT_THAT(ticks_between(0.5, 1.5, 8, 1).values, ElementsAre(1));
  EXPECT_THAT(ticks_between(1, 64, 8, 1).values, ElementsAre(10, 20, 30, 40, 50, 60));
}

TEST(PlotTest, ticks_of_any_range_are_few_and_lie_in_it) {
  for (const double low : {-1e15, -3.3, 0.0, 1e-12, 0.999999, 5e14}) {
    for (const double span : {1e-6, 0.1, 1.0, 3e7, 9e14}) {
      if (span < 1e-9 * std::abs(low)) continue;  // PlotFrame makes no such range
      const Ticks ticks = ticks_between(low, low + span, 8);
      EXPECT_LE(ticks.values.size(), 8U);
      for (const double value : ticks.values) {
        EXPECT_GE(value, low - 1e-6 * span - 1e-9 * std::abs(low));
        EXPECT_LE(value, low + span + 1e-6 * span + 1e-9 * std::abs(low));
      }
    }
  }
}

TEST(PlotTest, what_is_no_finite_number_leaves_a_gap) {
  const std::string html = html_plot(plot_of({{0, 1}, {1, 2}, {2, nan}, {3, 4}, {4, 1e300}, {5, 3}, {6, 3}}));
  EXPECT_EQ(count_of(html, "<polyline"), 3U);
  EXPECT_EQ(count_of(html, "<circle"), 1U);  // of the lone point
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf")));
}

TEST(PlotTest, one_point_and_equal_points_have_a_range_around_them) {
  for (const double y : {0.0, 5.0, -5.0, 1e15, 1e-15}) {
    Plot plot = plot_of({{0, y}});
    plot.y.least.reset();
    const PlotFrame frame(plot);
    EXPECT_GT(frame.y_of(y), PlotFrame::top) << y;
    EXPECT_LT(frame.y_of(y), PlotFrame::height - PlotFrame::bottom) << y;
    EXPECT_GE(frame.x_of(0), PlotFrame::left);
  }
}

TEST(PlotTest, bars_of_several_series_stand_side_by_side_on_the_axis) {
  Plot plot = plot_of({{0, 75}, {1, nan}, {2, 25}});
  plot.x.least.reset();
  plot.y.least = 0;
  plot.series[0].shape = PlotSeries::Shape::bars;
  plot.series.push_back(plot.series[0]);
  const PlotFrame frame(plot);
  EXPECT_DOUBLE_EQ(frame.x_range()[0], -0.5);
  EXPECT_DOUBLE_EQ(frame.x_range()[1], 2.5);
  const std::string html = html_plot(plot);
  EXPECT_EQ(count_of(html, "<rect"), 4U);
  EXPECT_EQ(count_of(html, "<polyline"), 0U);
  const double width = frame.x_of(0.4) - frame.x_of(0);
  for (const double left : {-0.4, 0.0, 1.6, 2.0}) {
    const double y = left < 1 ? 75 : 25;
    EXPECT_THAT(html, HasSubstr(fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"",
                                            frame.x_of(left), frame.y_of(y), width, frame.y_of(0) - frame.y_of(y))))
        << left;
  }
}

TEST(PlotTest, a_spread_is_a_band_through_its_edges) {
  Plot plot = plot_of({{0, 2}, {1, 3}});
  plot.series[0].spread = {{1, 4}, {2, 6}};
  const PlotFrame frame(plot);
  EXPECT_DOUBLE_EQ(frame.y_range()[1], 6 + 0.05 * 5);
  EXPECT_THAT(html_plot(plot),
              HasSubstr(fmt::format("points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"", frame.x_of(0),
                                    frame.y_of(4), frame.x_of(1), frame.y_of(6), frame.x_of(1), frame.y_of(2),
                                    frame.x_of(0), frame.y_of(1))));
}

// A band of an interval that reaches below 0 covered the numbers below the axis.
TEST(PlotTest, a_spread_ends_at_the_axis) {
  Plot plot = plot_of({{0, 2}, {1, 3}});
  plot.y.least = 0;
  plot.series[0].spread = {{-8, 4}, {2, 6}};
  const PlotFrame frame(plot);
  EXPECT_DOUBLE_EQ(frame.y_of(0), PlotFrame::height - PlotFrame::bottom);
  EXPECT_THAT(html_plot(plot), HasSubstr(fmt::format(" {:.1f},{:.1f}\"", frame.x_of(0), frame.y_of(0))));
}

TEST(PlotTest, names_are_escaped_and_marks_outside_are_left_out) {
  Plot plot = plot_of({{0, 1}, {10, 2}});
  plot.title = "<t>";
  plot.x.name = "<x>";
  plot.y.unit = "<u>";
  plot.series[0].name = "<s>";
  plot.series[0].shape = PlotSeries::Shape::dotted_line;
  plot.series.push_back(plot.series[0]);
  plot.marks = {{5, "<m>"}, {11, "beyond"}, {nan, "nowhere"}};
  const std::string html = html_plot(plot);
  for (const char* name : {"t", "x", "u", "s", "m"}) {
    EXPECT_THAT(html, HasSubstr(fmt::format("&lt;{}&gt;", name)));
    EXPECT_THAT(html, Not(HasSubstr(fmt::format("<{}>", name))));
  }
  EXPECT_EQ(count_of(html, "class=\"mark\""), 1U);
}

TEST(PlotTest, a_background_curve_is_gray_and_not_in_the_legend) {
  Plot plot = plot_of({{0, 1}, {10, 2}});
  plot.series.push_back(plot.series[0]);
  plot.series[1].name = "behind";
  EXPECT_THAT(html_plot(plot), HasSubstr("behind</span>"));
  plot.series[1].shape = PlotSeries::Shape::background;
  EXPECT_THAT(html_plot(plot), Not(HasSubstr("behind")));
  EXPECT_THAT(html_plot(plot), HasSubstr("stroke=\"var(--quiet)\""));
}

TEST(PlotTest, a_plot_without_points_says_so_and_colours_go_round) {
  EXPECT_THAT(html_plot(plot_of({})), HasSubstr("There are no measurements yet."));
  EXPECT_THAT(html_plot(plot_of({{nan, 1}})), HasSubstr("There are no measurements yet."));
  EXPECT_EQ(plot_color(0), plot_color(8));
  Plot plot = plot_of({{0, 1}, {1, 1}});
  EXPECT_THAT(html_plot(plot), Not(HasSubstr("dasharray")));
  plot.series[0].color = 8;
  EXPECT_THAT(html_plot(plot), HasSubstr("dasharray"));  // told from the first by its dashes
}

}  // namespace lockstep::plot_test
