#include "scaling/study_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>

#include "made_up_study.hpp"
#include "scaling/findings.hpp"
#include "scaling/study_table.hpp"
#include "support/messages.hpp"

namespace lockstep::study_page_test {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(StudyPage, has_what_the_study_finds_and_where_it_ran) {
  const Study study = made_up_study({.latency_seconds = 5e-4, .bytes_a_second = 1e11, .noise = 0.01});
  const std::string page = study_page(study);
  EXPECT_THAT(page, HasSubstr("<h1>Scaling of resnet20 up to 4 ranks</h1>"));
  EXPECT_THAT(page, HasSubstr("latency-bound: 4 buckets of 3.41 MB"));
  EXPECT_THAT(page, HasSubstr("The prediction is off by "));
  EXPECT_THAT(page, HasSubstr("<td>cpu: made up, 1 thread, fp32</td>"));
  EXPECT_THAT(page, HasSubstr("<td>Open MPI v4.1.4</td>"));
  EXPECT_THAT(page, HasSubstr("Strong scaling: 64 samples "));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

// It was the number of ranks that ran the study.
TEST(StudyPage, its_title_has_the_largest_measured_number_of_ranks) {
  Study study = made_up_study({});
  study.hosts.resize(6, "n1");
  EXPECT_THAT(study_page(study), HasSubstr("<h1>Scaling of resnet20 up to 4 ranks</h1>"));
}

TEST(StudyPage, names_of_unknown_origin_are_no_markup) {
  Study study = made_up_study({});
  study.model = "<img src=x>";
  study.hosts[0] = "\x1b[2J<b>";
  study.points[2].by_rank[0].host = "<i>";
  study.points[2].by_rank[0].arrival = 1;
  study.versions["<u>"] = "</table>";
  const std::string page = study_page(study);
  for (const char* const markup : {"<img", "\x1b", "<b>", "<i>", "<u>", "</table></td>"}) {
    EXPECT_THAT(page, Not(HasSubstr(markup)));
  }
}

TEST(StudyPage, curves_have_the_intervals_of_their_repeats) {
  const Study study = made_up_study({.noise = 0.05});
  const Plot rates = throughput_plot(study);
  ASSERT_EQ(rates.series.size(), 3U);
  const Interval rate = throughput_of(*points_of(study, Scaling::weak).back());
  EXPECT_EQ(rates.series[0].points.back().x, 4);
  EXPECT_DOUBLE_EQ(rates.series[0].points.back().y, rate.middle);
  EXPECT_DOUBLE_EQ(rates.series[0].spread.back().low, rate.low);
  EXPECT_DOUBLE_EQ(rates.series[1].points.back().y, 4 * rates.series[0].points.front().y);
  EXPECT_DOUBLE_EQ(efficiency_plot(study).series[1].points.front().y, 100);
}

// Ticks once stood at 1.2 ranks, and the right half of a wide page was empty.
TEST(StudyPage, ranks_are_counted_and_a_wide_page_has_two_columns) {
  const Study study = made_up_study({.ranks = {1, 2}});
  for (const Plot& plot : {throughput_plot(study), efficiency_plot(study)}) {
    EXPECT_THAT(html_plot(plot), HasSubstr(">2</text>"));
    EXPECT_THAT(html_plot(plot), Not(HasSubstr(">1.2</text>")));
  }
  EXPECT_THAT(study_page(study), HasSubstr("<div class=\"beside\">"));
  EXPECT_THAT(study_page(study), HasSubstr("@media (min-width: 1400px)"));
}

TEST(StudyPage, what_was_varied_alone_has_tables_and_plots) {
  Study study = made_up_study({.noise = 0.01});
  EXPECT_THAT(study_page(study), Not(HasSubstr("bf16")));
  EXPECT_THAT(study_page(study), Not(HasSubstr("exchanged per update")));
  add_varied(study, {.threads = 2}, 1.5);
  add_varied(study, {.precision = "bf16"}, 2);
  const std::string page = study_page(study);
  EXPECT_THAT(page, HasSubstr("at 4 ranks, 32 samples "));
  EXPECT_THAT(page, HasSubstr("Throughput by threads "));
  EXPECT_THAT(page, HasSubstr("<td>bf16</td>"));
  EXPECT_THAT(page, AllOf(HasSubstr("2 threads "), HasSubstr("1.500 times")));
  add_varied(study, {.exchange = {.local_steps = 16}}, 2);
  add_varied(study, {.exchange = {.servers = 1}}, 2).buckets.clear();
  const std::string exchanges = study_page(study);  // of 13 MiB; servers get 4 * 269,722 bytes
  EXPECT_THAT(exchanges, ContainsRegex("<td>all-reduce</td>[^\n]*>13.6<"));
  EXPECT_THAT(exchanges, ContainsRegex("<td>local 16</td>[^\n]*>0.852<"));
  EXPECT_THAT(exchanges, ContainsRegex("<td>ps 1</td>[^\n]*>1.08<"));
  const Plot plot = sweep_plot(study, Sweep::threads);
  ASSERT_EQ(plot.series[0].points.size(), 2U);
  EXPECT_EQ(plot.series[0].points[1].x, 2);
  EXPECT_DOUBLE_EQ(plot.series[0].spread[1].low, throughput_of(study.points[study.points.size() - 4]).low);
}

// 4 ranks spend 38.5 ms: bars are as high as their parts, one on another.
TEST(StudyPage, bars_stand_on_one_another) {
  const std::string html = html_step_bars(made_up_study({}), Scaling::weak);
  const std::regex bar(
      R"re(<rect fill="[^"]*" x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"><title>([^:]*))re");
  double foot = 0;
  std::string column;
  int bars = 0;
  for (std::sregex_iterator found(html.begin(), html.end(), bar); found != std::sregex_iterator(); ++found, ++bars) {
    const double y = std::stod((*found)[2]);
    const double height = std::stod((*found)[3]);
    if ((*found)[1] == column) {
      EXPECT_NEAR(y + height, foot, 0.21) << (*found)[4];
    }
    column = (*found)[1];
    foot = y;
  }
  EXPECT_EQ(bars, 3 * static_cast<int>(step_part_count));
}

// One table had 16 columns, more than a page of 1200 pixels shows.
TEST(StudyPage, parts_of_a_step_have_a_table_of_their_own) {
  const std::string page = study_page(made_up_study({}));
  EXPECT_THAT(page, HasSubstr("<thead><tr><th>ranks</th><th class=\"right\">input, ms</th>"));
  EXPECT_THAT(page, HasSubstr("step, ms</th><th class=\"right\">±</th></tr></thead>"));
}

TEST(StudyPage, a_device_that_tells_no_parts_has_no_bars) {
  Study study = made_up_study({});
  for (StudyPoint& point : study.points) point.parts = {};
  EXPECT_EQ(html_step_bars(study, Scaling::weak), "");
  EXPECT_THAT(study_page(study), Not(HasSubstr(std::string(describe(StepPart::exposed)))));
  EXPECT_THAT(study_page(study), Not(HasSubstr("forward, ms")));
  EXPECT_THAT(study_table(study), AllOf(HasSubstr("efficiency"), Not(HasSubstr("parts of a step"))));
}

TEST(StudyTable, has_a_row_for_each_rank_count) {
  EXPECT_THAT(study_table(made_up_study({.noise = 0.01})), StartsWith(R"(weak scaling, 32 samples per rank
ranks  nodes  batch-per-rank      samples/s  efficiency, %  step, ms
    1      1              32   929.1 ± 16.5    100.0 ± 0.0     34.44
)"));
}

// Efficiency seemed to contradict the two rates beside it.
TEST(StudyTable, table_and_page_say_what_efficiency_is) {
  const Study study = made_up_study({.noise = 0.01});
  for (const std::string& text : {study_table(study), study_page(study)}) {
    EXPECT_THAT(text, AllOf(HasSubstr("relative to the fewest ranks in the same repeat"), HasSubstr("can differ.")));
  }
}

// They were 137 columns wide.
TEST(StudyTable, tables_fit_a_terminal) {
  std::istringstream table(study_table(made_up_study({.seconds_a_sample = 0.3, .noise = 0.1, .ranks = {1, 16384}})));
  for (std::string line; std::getline(table, line);) {
    EXPECT_LE(
        std::ranges::count_if(line, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }), 80)
        << line;
  }
}

TEST(StudyTable, one_rank_count_alone_tells_nothing) {
  expect_message(study_sentences(made_up_study({.ranks = {1}})), {"rank"});
}

}  // namespace lockstep::study_page_test
