#include "search/search_state.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::search_state_test {

using Row = std::tuple<std::int64_t, std::size_t, std::int64_t, std::optional<double>, int>;

// What a search knows of its trials, for comparisons.
std::vector<Row> rows_of(const SearchState& state) {
  std::vector<Row> rows;
  for (const auto& [number, trial] : state.trials()) {
    rows.emplace_back(number, trial.rung, trial.steps, trial.metric, trial.code);
  }
  return rows;
}

std::vector<std::pair<std::int64_t, std::size_t>> open_in(const SearchState& state) {
  std::vector<std::pair<std::int64_t, std::size_t>> open;
  for (const Order& order : state.open_orders()) open.emplace_back(order.trial, order.rung);
  return open;
}

// A metric of a program's own may be negative, and larger than any loss of a training.
TEST(SearchStateTest, a_journal_gives_back_every_metric) {
  const std::vector<double> metrics = {-1.5, 1e300, -1e300, 0, 1e-300, -0.0, 2e15, -7};
  for (const bool is_smaller_better : {false, true}) {
    TemporaryFolder temporary;
    const SearchFolder folder(temporary.path());
    const Space space = space_of({{"program", "./mine"},
                                  {"hyperparameters", {{"n", {{"type", "int"}, {"minval", "1"}, {"maxval", "9"}}}}},
                                  {"searcher",
                                   {{"name", "asha"},
                                    {"metric", "score"},
                                    {"smaller_is_better", is_smaller_better ? "true" : "false"},
                                    {"max_length", {{"batches", "8"}}},
                                    {"max_trials", "8"},
                                    {"max_concurrent_trials", "2"},
                                    {"divisor", "2"}}}},
                                 "space.yaml");
    std::size_t results = 0;
    while (true) {
      SearchState state(space, folder, {});
      if (state.open_orders().empty()) break;
      const Order order = state.open_orders().front();
      std::filesystem::create_directories(folder.trial(order.trial));
      const double metric = metrics[results++ % metrics.size()];
      state.add_result(order, order.length, {TrialEnd::Kind::reached, metric});
      const SearchState continued(space, folder, {});
      EXPECT_EQ(rows_of(continued), rows_of(state));
      EXPECT_EQ(open_in(continued), open_in(state));
      EXPECT_EQ(continued.trials().at(order.trial).metric, metric);
    }
    EXPECT_GT(results, 8U);
    std::filesystem::rename(folder.trial(3), temporary.path() / "elsewhere");
    std::filesystem::create_symlink(temporary.path() / "elsewhere", folder.trial(3));
    expect_error(Failure::usage, {"trial-3", "symbolic link"}, [&] { SearchState(space, folder, {}); });
  }
}

}  // namespace lockstep::search_state_test
