// The page of a search shows what its journal and its trials' folders say, and nothing of them as markup.
#include "search/page/search_page.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "search/page/search_plots.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::search_page_test {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

json space_with(const json& hyperparameters) {
  return {{"program", "train_cifar"},
          {"arguments", "--data data"},
          {"searcher",
           {{"name", "asha"},
            {"metric", "test-loss"},
            {"max_length", {{"epochs", "8"}}},
            {"max_trials", "4"},
            {"divisor", "2"}}},
          {"hyperparameters", hyperparameters}};
}

json order(int trial, int rung, int length, const std::vector<std::string>& settings = {}) {
  json order = {{"trial", trial}, {"rung", rung}, {"length", length}};
  if (rung == 1) order["settings"] = settings;
  return order;
}

class SearchPageTest : public testing::Test {
 protected:
  void write(const std::vector<json>& lines, std::string_view end = "") const {
    std::string text;
    for (const json& line : lines) text += json_text(line) + "\n";
    write_file_atomically(folder_.path() / "search.jsonl", text.append(end));
  }

  // Trial 1 is promoted, trial 2 ends, trial 3 fails, and trial 4 is under way.
  void write_example() const {
    const json header = {
        {"search", 1},
        {"space", space_with({{"lr", {{"type", "log"}, {"minval", "-2"}, {"maxval", "0"}}},
                              {"note", {{"type", "categorical"}, {"vals", {"<b>bold</b>", "plain"}}}}})},
        {"orders",
         {order(1, 1, 2, {"--lr=0.1234567", "--note=<b>bold</b>"}), order(2, 1, 2, {"--lr=0.5", "--note=plain"})}}};
    write({header,
           {{"trial", 1}, {"rung", 1}, {"steps", 20}, {"metric", 1.5}, {"orders", {order(3, 1, 2, {"--lr=1"})}}},
           {{"trial", 2}, {"rung", 1}, {"steps", 20}, {"metric", 1.75}, {"orders", {order(1, 2, 8)}}},
           {{"trial", 3}, {"rung", 1}, {"restart", 1}, {"code", 1}, {"reason", "killed"}},
           {{"trial", 3}, {"rung", 1}, {"code", 79}, {"reason", "<i>not finite</i>"}, {"orders", {order(4, 1, 2)}}},
           {{"trial", 1}, {"rung", 2}, {"steps", 80}, {"metric", 0.75}, {"orders", json::array()}}},
          R"({"trial": 4, "ru)");
  }

  TemporaryFolder folder_;
};

TEST_F(SearchPageTest, reads_results_failures_and_trials_under_way) {
  write_example();
  const SearchRecord search = read_search(folder_.path());
  EXPECT_EQ(search.best, 1);
  EXPECT_THAT(search.lengths, ElementsAre(2, 8));
  EXPECT_THAT(ranked_trials(search), ElementsAre(1, 2, 4, 3));
  EXPECT_EQ(search.trials.at(1).results.size(), 2U);
  EXPECT_EQ(search.trials.at(1).last.steps, 80);
  EXPECT_EQ(search.trials.at(3).last.restarts, 1);
  EXPECT_EQ(search.trials.at(3).last.code, 79);
  EXPECT_EQ(search.trials.at(4).open_length, 2);
}

TEST_F(SearchPageTest, shows_trials_cost_and_the_best_settings) {
  write_example();
  const std::string page = search_page(read_search(folder_.path()));
  EXPECT_THAT(page, HasSubstr("trained for 10 epochs in total"));  // 8 + 2
  EXPECT_THAT(page, HasSubstr("would take 32: 69 % is saved"));
  EXPECT_THAT(page, HasSubstr("The search has not ended."));
  EXPECT_THAT(page, HasSubstr("<td>--lr</td><td>0.1235</td>"));
  EXPECT_THAT(page, HasSubstr("<td>under way to 2 epochs</td>"));
  EXPECT_THAT(page, HasSubstr("There are too few trials"));
  EXPECT_THAT(page, HasSubstr("no summary.json"));
}

TEST_F(SearchPageTest, nothing_of_a_file_is_markup) {
  write_example();
  std::filesystem::create_directory(folder_.path() / "trial-1");
  write_file_atomically(folder_.path() / "trial-1/summary.json",
                        json_text({{"command_line", {"/bin/<u>train</u>", "--lr=0.1", "--output=runs/a", "it's"}}}));
  const std::string page = search_page(read_search(folder_.path()));
  for (const char* markup : {"<b>", "<i>", "<u>"}) EXPECT_THAT(page, Not(HasSubstr(markup)));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;bold&lt;/b&gt;"));
  EXPECT_THAT(page, HasSubstr("failed (79): &lt;i&gt;not finite&lt;/i&gt;"));
  EXPECT_THAT(page, HasSubstr("--lr=0.1 --output=OUTPUT &#39;it"));
}

TEST_F(SearchPageTest, curves_have_tests_between_rungs_and_large_losses_leave_the_plot) {
  write_example();
  std::filesystem::create_directory(folder_.path() / "trial-1");
  std::string lines;
  for (const int step : {10, 20, 40, 80}) {
    lines += json_text({{"kind", "test"}, {"epoch", 1}, {"step", step}, {"loss", 60.0 / step}}) + "\n";
  }
  write_file_atomically(folder_.path() / "trial-1/metrics.jsonl", lines);
  SearchRecord search = read_search(folder_.path());
  const Plot plot = metric_curves(search);
  ASSERT_EQ(plot.series.size(), 2U);
  std::vector<double> lengths;
  for (const PlotPoint& point : plot.series[0].points) lengths.push_back(point.x);
  EXPECT_THAT(lengths, ElementsAre(1, 2, 4, 8));
  EXPECT_EQ(plot.series[0].points[1].y, 1.5);  // the journal's, not that of metrics.jsonl
  EXPECT_EQ(plot.marks.size(), 2U);
  EXPECT_EQ(loss_limit(search), std::nullopt);
  search.trials.at(4).last.metric = 1e9;
  EXPECT_EQ(loss_limit(search), 4 * 1.75);
}

TEST_F(SearchPageTest, importance_ranks_the_hyperparameters) {
  const json space = space_with({{"lr", {{"type", "double"}, {"minval", "0"}, {"maxval", "1"}}},
                                 {"seed", {{"type", "int"}, {"minval", "0"}, {"maxval", "99"}}}});
  json orders = json::array();
  std::vector<json> lines(1);
  for (int trial = 1; trial <= 20; ++trial) {
    const std::string lr = fmt::format("--lr={}", 0.01 * trial);
    orders.push_back(order(trial, 1, 8, {lr, fmt::format("--seed={}", trial * 37 % 20)}));
    lines.push_back(
        {{"trial", trial}, {"rung", 1}, {"steps", 80}, {"metric", 0.1 * trial + 0.01}, {"orders", json::array()}});
  }
  lines[0] = {{"search", 1}, {"space", space}, {"orders", orders}};
  write(lines);
  const std::string page = search_page(read_search(folder_.path()));
  EXPECT_THAT(page,
              HasSubstr("<td>lr</td><td class=\"right\">1.00</td><td class=\"right\">1.00 to 1.00</td><td>smaller "
                        "values are better"));
  EXPECT_LT(page.find("<td>lr</td>"), page.find("<td>seed</td>"));
  EXPECT_THAT(page, HasSubstr("may have none"));
}

// Of a process that had lost the journal's lock without knowing it.
TEST_F(SearchPageTest, a_numbered_line_that_does_not_follow_does_not_count) {
  const auto result = [](double metric, int line) {
    return json{{"trial", 1},  {"rung", 1}, {"steps", 20}, {"metric", metric}, {"orders", json::array()},
                {"line", line}};
  };
  json header = {{"search", 1}, {"space", space_with({{"lr", "1"}})}, {"orders", {order(1, 1, 8, {"--lr=1"})}}};
  header["line"] = 1;
  write({header, result(1.5, 2), result(0.5, 2)});
  EXPECT_EQ(read_search(folder_.path()).trials.at(1).last.metric, 1.5);
}

TEST_F(SearchPageTest, refuses_folders_without_a_search_and_damaged_journals) {
  expect_error(Failure::usage, {"search.jsonl", "--output"}, [&] { read_search(folder_.path()); });
  write({}, R"({"search": 1)");
  expect_error(Failure::usage, {"search.jsonl", "empty"}, [&] { read_search(folder_.path()); });
  write_example();
  const json header = {{"search", 1}, {"space", space_with({{"lr", "1"}})}, {"orders", {order(1, 1, 2, {"--lr=1"})}}};
  write({header}, "damaged\n");
  expect_error(Failure::bad_data, {"search.jsonl", "line 2"}, [&] { read_search(folder_.path()); });
  write({header, {{"trial", 7}, {"rung", 1}, {"metric", 1}, {"steps", 1}}});  // nobody ordered it
  expect_error(Failure::bad_data, {"search.jsonl", "line 2"}, [&] { read_search(folder_.path()); });
  write({{{"search", 1}, {"space", space_with({{"<x>", "1"}})}}});
  expect_error(Failure::usage, {"search.jsonl", "<x>"}, [&] { read_search(folder_.path()); });
}

}  // namespace lockstep::search_page_test
