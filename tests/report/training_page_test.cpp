// What the page of trainings shows: curves by their numbers, differences, and nothing of a file as markup.
#include "report/training_page.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/json_text.hpp"
#include "models/model_zoo.hpp"

namespace lockstep::training_page_test {

using testing::HasSubstr;
using testing::Not;

MetricsLine line_at(std::int64_t step, MetricsLine::Kind kind, double loss, double accuracy) {
  MetricsLine line;
  line.kind = kind;
  line.step = step;
  line.loss = loss;
  line.accuracy = accuracy;
  return line;
}

RunRecord run_named(const std::string& name) {
  RunRecord run;
  run.name = name;
  run.state = "done";
  run.steps_per_epoch = 10;
  run.summary = *parse_summary(json_text({{"model", "lenet"},
                                          {"data", "cifar10"},
                                          {"steps", 20},
                                          {"step", 20},
                                          {"epochs", 2},
                                          {"ranks", 2},
                                          {"test_accuracy", 0.625},
                                          {"test_loss", 1.25},
                                          {"training_seconds", 75},
                                          {"samples_per_second", 1234.5},
                                          {"recipe", {{"lr", 0.1}, {"epochs", 2}}},
                                          {"run", {{"output", "runs/" + name}, {"note", "a note"}}},
                                          {"versions", {{"HDF5", "1.10.8"}}},
                                          {"command_line", {"train_cifar", "--lr", "0.1"}}}));
  for (int step = 1; step <= 20; ++step) {
    run.training.push_back(line_at(step, MetricsLine::Kind::training, 3.0 - 0.1 * step, 0.03 * step));
  }
  for (int epoch = 1; epoch <= 2; ++epoch) {
    run.tests.push_back(line_at(10 * epoch, MetricsLine::Kind::test, 2.0 / epoch, 0.25 * epoch));
    run.tests.back().top5 = 0.875;
  }
  return run;
}

TEST(TrainingPageTest, a_curve_has_a_point_for_each_line_that_has_the_number) {
  RunRecord run = run_named("a");
  run.training[3].loss = run.training[4].loss = std::nullopt;
  const PlotSeries series = curve_of(run.training, &MetricsLine::loss, 10);
  ASSERT_EQ(series.points.size(), 18U);
  EXPECT_DOUBLE_EQ(series.points[0].x, 0.1);
  EXPECT_DOUBLE_EQ(series.points[0].y, 2.9);
  EXPECT_DOUBLE_EQ(series.points[3].x, 0.6);
  EXPECT_TRUE(series.spread.empty());
}

// One folder with metrics of its own removed the curves of all other trainings.
TEST(TrainingPageTest, metrics_of_a_training_loop_of_its_own_follow_the_curves_of_other_trainings) {
  RunRecord custom;
  custom.name = "c";
  custom.own_metrics["ratio"].validation = {{1, 0.5}, {2, 0.25}};
  const std::vector<RunRecord> runs = {run_named("a"), custom, run_named("b")};
  const std::vector<RunRecord> ordinary = {runs[0], runs[2]};
  const std::vector<Plot> plots = plots_of(runs);
  const std::vector<Plot> others = plots_of(ordinary);
  ASSERT_EQ(plots.size(), others.size() + 1);
  for (std::size_t plot = 0; plot < others.size(); ++plot) {
    EXPECT_EQ(plots[plot].title, others[plot].title);
    EXPECT_EQ(plots[plot].series.size(), others[plot].series.size()) << plots[plot].title;
  }
  EXPECT_EQ(others[0].series.size(), 2U);
  EXPECT_EQ(plots.back().title, "ratio");
  ASSERT_EQ(plots.back().series.size(), 1U);
  EXPECT_EQ(plots.back().series[0].name, "c");
}

TEST(TrainingPageTest, many_lines_become_means_with_their_least_and_most) {
  const RunRecord run = run_named("a");
  const PlotSeries series = curve_of(run.training, &MetricsLine::loss, 10, 6);  // four each
  ASSERT_EQ(series.points.size(), 5U);
  EXPECT_DOUBLE_EQ(series.points[0].x, 0.25);
  EXPECT_DOUBLE_EQ(series.points[0].y, 2.75);
  EXPECT_DOUBLE_EQ(series.spread[0].low, 2.6);
  EXPECT_DOUBLE_EQ(series.spread[0].high, 2.9);
}

// The one step that an epoch of 351 steps has beyond its last report was a point like any other: a spike.
TEST(TrainingPageTest, a_few_steps_at_an_epochs_end_are_no_point_of_their_own) {
  std::vector<MetricsLine> lines;
  for (const auto& [step, loss] :
       {std::pair(50, 2.0), std::pair(100, 1.5), std::pair(101, 6.6), std::pair(150, 1.25)}) {
    lines.push_back(line_at(step, MetricsLine::Kind::training, loss, 0));
  }
  const PlotSeries series = curve_of(lines, &MetricsLine::loss, 100);
  ASSERT_EQ(series.points.size(), 3U);
  EXPECT_DOUBLE_EQ(series.points[1].x, 1.01);
  EXPECT_DOUBLE_EQ(series.points[1].y, (50 * 1.5 + 6.6) / 51);
  EXPECT_DOUBLE_EQ(series.points[2].y, 1.25);
}

TEST(TrainingPageTest, one_training_has_training_and_test_in_one_plot_and_its_interruptions) {
  std::vector<RunRecord> runs{run_named("a")};
  runs[0].summary.interruptions = {{RunState::running, 5, 1795332000, 3, "cpu: one"}};
  const std::vector<Plot> plots = plots_of(runs);
  ASSERT_EQ(plots.size(), 4U);
  ASSERT_EQ(plots[1].series.size(), 2U);
  EXPECT_EQ(plots[1].series[1].name, "test");
  EXPECT_DOUBLE_EQ(plots[1].series[1].points[1].y, 50);  // in percent
  ASSERT_EQ(plots[1].marks.size(), 1U);
  EXPECT_DOUBLE_EQ(plots[1].marks[0].x, 0.5);
  EXPECT_THAT(plots[1].marks[0].name, testing::AllOf(HasSubstr("killed"), HasSubstr("step 5")));
  const std::string html = training_html(runs, "<p>more</p>");
  EXPECT_THAT(html, HasSubstr("<h1>Training of lenet on cifar10</h1>"));
  EXPECT_THAT(html, HasSubstr("<td>test accuracy (top-1)</td><td>62.50 %</td>"));
  EXPECT_THAT(html, HasSubstr("<td>test accuracy (top-5)</td><td>87.50 %</td>"));
  EXPECT_THAT(html, HasSubstr("<td>attempts</td><td>2</td>"));  // 0 interruptions were of a training that was stopped
  EXPECT_THAT(html, Not(HasSubstr("augmentation")));
  runs[0].summary.fields["test_augment"] = "flip";
  runs[0].summary.fields["plain_test_accuracy"] = 0.5;
  runs[0].summary.fields["plain_validation_accuracy"] = 0.625;
  EXPECT_THAT(training_html(runs, ""),
              testing::AllOf(HasSubstr("<td>test-time augmentation</td><td>flip</td>"),
                             HasSubstr("<td>test accuracy without augmentation</td><td>50.00 %</td>"),
                             HasSubstr("<td>validation accuracy without augmentation</td><td>62.50 %</td>")));
  EXPECT_THAT(html, HasSubstr("<td>training time</td><td>1:15</td>"));
  EXPECT_THAT(html, HasSubstr("<td>killed</td><td class=\"right\">3</td><td>cpu: one</td><td class=\"right\">5</td>"
                              "<td>2026-11-22T07:20:00Z</td>"));
  EXPECT_THAT(html, HasSubstr("<td>versions</td><td>HDF5: 1.10.8</td>"));
  EXPECT_THAT(html, HasSubstr("<td>note</td><td>a note</td>"));
  EXPECT_THAT(html, HasSubstr("<pre>train_cifar --lr 0.1</pre>"));
  EXPECT_THAT(html, HasSubstr("<p>more</p>"));
  EXPECT_THAT(html, Not(HasSubstr("Differences")));
  EXPECT_THAT(html, Not(HasSubstr("EMA")));  // none was kept
}

TEST(TrainingPageTest, several_trainings_have_a_plot_for_each_kind_and_a_table_of_what_differs) {
  std::vector<RunRecord> runs{run_named("a"), run_named("b")};
  runs[1].summary.fields["recipe"]["lr"] = 0.2;
  runs[1].summary.fields["versions"]["HDF5"] = "1.14";
  runs[1].summary.fields["recipe"]["ema"] = 0.99;
  runs[1].tests[0].ema_accuracy = 0.5;
  const std::vector<Plot> plots = plots_of(runs);
  ASSERT_EQ(plots.size(), 6U);
  EXPECT_EQ(plots[0].title, "Training loss");
  ASSERT_EQ(plots[2].series.size(), 2U);
  EXPECT_EQ(plots[2].series[1].name, "b");
  EXPECT_EQ(plots[2].series[1].color, 1);
  ASSERT_EQ(plots[3].series.size(), 1U);
  EXPECT_EQ(plots[3].series[0].color, 1);  // a training has one color in all plots

  const std::vector<Difference> differences = differences_of(runs);
  ASSERT_EQ(differences.size(), 3U);
  EXPECT_EQ(differences[0].name, "--ema");
  EXPECT_THAT(differences[0].values, testing::ElementsAre("", "0.99"));
  EXPECT_EQ(differences[1].name, "--lr");
  EXPECT_THAT(differences[1].values, testing::ElementsAre("0.1", "0.2"));
  EXPECT_EQ(differences[2].name, "version of HDF5");
  EXPECT_THAT(training_html(runs, ""), HasSubstr("<td>--lr</td><td>0.1</td><td>0.2</td>"));
  runs[1] = run_named("a");
  EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("<td>--lr</td><td>")));
}

// A training of one epoch that got another one, beside a training of two: no difference was named.
TEST(TrainingPageTest, steps_that_an_earlier_attempt_planned_are_a_difference) {
  std::vector<RunRecord> runs{run_named("a"), run_named("b")};
  runs[0].summary.interruptions = {{RunState::running, 5, 0, 1, "", 20}};
  EXPECT_THAT(training_html(runs, ""), HasSubstr("No differences"));
  runs[0].summary.interruptions.push_back({RunState::done, 10, 0, 1, "", 10});
  EXPECT_THAT(training_html(runs, ""), testing::AllOf(HasSubstr("<td>planned steps</td><td>20, 10, 20</td><td>20</td>"),
                                                      HasSubstr("<td>done (planned steps: 10)</td>")));
}

TEST(TrainingPageTest, each_network_is_drawn_once_with_the_names_of_its_trainings) {
  std::vector<RunRecord> runs{run_named("a"), run_named("b"), run_named("c"), run_named("d")};
  EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("<h2>Network")));
  runs[0].network = runs[2].network = model_graph({"lenet", {32, 32, 3}, 10});
  EXPECT_THAT(training_html(std::span(runs).first(1), ""), HasSubstr("<h2>Network</h2>\n<p>Parameters: 62,006."));
  EXPECT_THAT(training_html(runs, ""), HasSubstr("<h2>Network</h2>\n<h3>a, c</h3>\n<p>Parameters: 62,006."));
  runs[1].network = model_graph({"resnet20", {32, 32, 3}, 10});
  EXPECT_THAT(training_html(runs, ""), testing::AllOf(HasSubstr("<h2>Networks</h2>"), HasSubstr("<h3>b</h3>")));
}

TEST(TrainingPageTest, asynchronous_gradients_have_a_plot_of_their_ages) {
  std::vector<RunRecord> runs{run_named("a")};
  const std::size_t others = plots_of(runs).size();
  runs[0].summary.fields["applied_by_age"] = {6, 0, 2};
  ASSERT_EQ(plots_of(runs).size(), others + 1);
  const PlotSeries ages = plots_of(runs).back().series.at(0);
  ASSERT_EQ(ages.points.size(), 3U);
  EXPECT_EQ(ages.shape, PlotSeries::Shape::bars);
  EXPECT_DOUBLE_EQ(ages.points[0].y, 75);  // in percent
  EXPECT_DOUBLE_EQ(ages.points[2].x, 2);
  EXPECT_DOUBLE_EQ(ages.points[2].y, 25);
  runs[0].summary.fields["pushes"] = {5, 4};
  runs[0].summary.fields["dropped_pushes"] = {0, 1};
  EXPECT_THAT(training_html(runs, ""),
              HasSubstr("<td>a</td><td class=\"right\">1</td><td class=\"right\">4</td><td class=\"right\">1</td>"));
  runs.push_back(run_named("b"));
  EXPECT_EQ(plots_of(runs).back().series.size(), 1U);
  for (const nlohmann::json& wrong :
       {nlohmann::json("x"), nlohmann::json{1, "x"}, nlohmann::json{0, 0}, nlohmann::json::array()}) {
    runs[0].summary.fields["applied_by_age"] = wrong;
    EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("Age of applied gradients"))) << wrong;
  }
  for (const nlohmann::json& wrong : {nlohmann::json("x"), nlohmann::json{1, "x"}, nlohmann::json{1},
                                      nlohmann::json{1.5, 2}, nlohmann::json::array()}) {
    runs[0].summary.fields["pushes"] = wrong;
    EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("Asynchronous gradients"))) << wrong;
  }
}

TEST(TrainingPageTest, work_that_ranks_share_by_speed_is_counted_by_rank) {
  std::vector<RunRecord> runs{run_named("a")};
  EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("shared by speed")));
  runs[0].summary.fields["updates_by_rank"] = {20, 12};
  EXPECT_THAT(training_html(runs, ""),
              testing::AllOf(HasSubstr("shared by speed"),
                             HasSubstr("<td>a</td><td class=\"right\">1</td><td class=\"right\">12</td>")));
  runs[0].summary.fields["updates_by_rank"] = {20, "12"};
  EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("shared by speed")));
}

TEST(TrainingPageTest, trainers_that_joined_and_left_are_listed_up_to_a_limit) {
  std::vector<RunRecord> runs{run_named("a")};
  EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("Trainers that")));
  runs[0].trainers = {{3, "0", "4711", "n1", "joined"}, {7, "0", "4711", "n1", "has <b>ended</b>"}};
  const std::string page = training_html(runs, "");
  EXPECT_THAT(page, HasSubstr("Trainers that joined and left"));
  EXPECT_THAT(page, HasSubstr("4711"));
  EXPECT_THAT(page, HasSubstr("has &lt;b&gt;ended&lt;/b&gt;"));
  runs[0].trainers.resize(250);
  EXPECT_THAT(training_html(runs, ""), HasSubstr("And 50 more."));
}

TEST(TrainingPageTest, nothing_of_a_file_becomes_markup) {
  const std::string bad = "<img src=x onerror=alert(1)>\"'&";
  std::vector<RunRecord> runs{run_named(bad), run_named("b")};
  for (auto& [name, value] : runs[0].summary.fields.items()) {
    if (value.is_string()) value = bad;
  }
  runs[0].state = bad;
  runs[0].summary.fields["recipe"] = {{bad, bad}};
  runs[0].summary.fields["run"] = {{bad, {bad, bad}}, {"note", bad}};
  runs[0].summary.fields["versions"] = {{bad, bad}};
  runs[0].summary.fields["hosts"] = {{bad, bad}};
  runs[0].summary.command_line = {bad};
  runs[0].summary.note = bad;
  runs[0].summary.tags = {bad, bad};
  runs[0].summary.fields["epochs"] = bad;
  runs[0].summary.interruptions = {{RunState::failed, 1, 0, 1, bad}};
  EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("<img")));
  EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("\"'&")));
  runs.pop_back();
  EXPECT_THAT(training_html(runs, ""), Not(HasSubstr("<img")));
}

TEST(TrainingPageTest, a_training_that_says_little_has_a_page) {
  RunRecord run;
  run.name = "a";
  run.summary.fields = {{"recipe", 7}, {"run", nlohmann::json::array()}, {"versions", nullptr}};
  EXPECT_THAT(training_html(std::vector<RunRecord>{run}, ""), HasSubstr("There are no measurements yet."));
}

}  // namespace lockstep::training_page_test
