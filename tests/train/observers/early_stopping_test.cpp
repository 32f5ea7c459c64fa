#include "train/observers/early_stopping.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/temporary_folder.hpp"
#include "train/observers/reported_training.hpp"

namespace lockstep::early_stopping_test {

struct Row {
  const char* rule;
  std::vector<double> results;  // of successive tests, after 5, 10, ... steps
  std::int64_t stops_after;     // of them; 0: never
  double best;
};

TEST(EarlyStopRule, a_training_ends_after_so_many_tests_without_improvement) {
  const std::vector<Row> rows = {
      {"test-accuracy:1:0", {0.5, 0.6, 0.6}, 3, 0.6},  // an equal one is no improvement
      {"test-accuracy:1:0", {0.5, 0.4}, 2, 0.5},
      {"test-accuracy:2:0", {0.5, 0.4, 0.6, 0.5, 0.5}, 5, 0.6},  // the count starts anew
      {"test-accuracy:2:0", {0.5, 0.4, 0.6, 0.5}, 0, 0.6},
      {"test-accuracy:1:0.25", {0.5, 0.75}, 2, 0.5},              // by more than that
      {"test-accuracy:2:0.25", {0.25, 0.4375, 0.625}, 0, 0.625},  // against the best, not the last
      {"test-accuracy:1:0", {0, 0}, 2, 0},                        // the first one is the best so far
      {"validation-loss:1:0", {2, 1, 1}, 3, 1},
      {"validation-loss:1:0.5", {2, 1.5}, 2, 2},
      {"validation-loss:2:0.5", {2, 1.75, 1.25, 3}, 0, 1.25},
      {"test-loss:3:0", {2, 3, 4, 5, 1}, 4, 2},
  };
  for (const Row& row : rows) {
    const EarlyStop rule = parse_early_stop(row.rule).value();
    std::optional<EarlyStopState> state;
    std::int64_t tests = 0;
    std::int64_t stopped = 0;
    for (const double result : row.results) {
      state = judge_test(rule, state, result, 5 * ++tests);
      if (stopped == 0 && state->tests >= rule.patience) stopped = tests;
      if (stopped != 0) break;
    }
    EXPECT_EQ(stopped, row.stops_after) << row.rule;
    EXPECT_EQ(state->best, row.best) << row.rule;
    EXPECT_EQ(state->metric, metric_name(rule));
  }
}

Evaluation right(std::int64_t of_eight) {
  Evaluation evaluation;
  evaluation.classes = 2;
  evaluation.samples = 8;
  evaluation.loss_sum = static_cast<double>(of_eight);  // grows with the accuracy, so that they contradict each other
  evaluation.confusion = {{{0, 0}, of_eight}, {{0, 1}, 8 - of_eight}};
  return evaluation;
}

// What the loop does with it.
class EarlyStoppingTest : public testing::Test {
 protected:
  void test(EarlyStopping& observer, std::int64_t steps, const std::vector<TestResult>& results) {
    training_.test(steps, results);
    for (const TestResult& result : results) observer.on_evaluation(training_.view(), result);
    observer.on_tested(training_.view());
  }
  // The state that a checkpoint gets now.
  TrainingState saved(const EarlyStopping& observer) const {
    TrainingState state;
    state.progress = training_.view().progress;
    observer.save(state);
    return state;
  }

  ReportedTraining training_{nullptr, {6, 5}, 100};
};

TEST_F(EarlyStoppingTest, it_judges_the_split_and_the_metric_of_its_rule) {
  EarlyStopping accuracy(*parse_early_stop("test-accuracy:1:0"), nullptr);
  EarlyStopping loss(*parse_early_stop("test-loss:1:0"), nullptr);
  EarlyStopping validation(*parse_early_stop("validation-accuracy:1:0"), nullptr);
  for (EarlyStopping* observer : {&accuracy, &loss, &validation}) {
    EXPECT_EQ(observer->summary(), nullptr);
    test(*observer, 5, {{Split::test, right(3)}, {Split::validation, right(3)}});
    test(*observer, 10, {{Split::test, right(4)}, {Split::validation, right(2)}});
  }
  EXPECT_FALSE(accuracy.ends_training());
  EXPECT_TRUE(loss.ends_training());
  EXPECT_TRUE(validation.ends_training());
  EXPECT_EQ(validation.summary(), (nlohmann::json{{"metric", "validation-accuracy"},
                                                  {"best", 0.375},
                                                  {"best_step", 5},
                                                  {"tests_without_improvement", 1},
                                                  {"ended", true}}));
}

TEST_F(EarlyStoppingTest, the_EMA_counts_where_there_is_one) {
  EarlyStopping observer(*parse_early_stop("test-accuracy:1:0"), nullptr);
  test(observer, 5, {{Split::test, right(3), right(5)}});
  test(observer, 10, {{Split::test, right(2), right(6)}});
  EXPECT_FALSE(observer.ends_training());
}

TEST_F(EarlyStoppingTest, the_log_says_what_is_judged_and_why_it_ends) {
  Recipe recipe;
  recipe.early_stop = parse_early_stop("test-loss:1:0.01");
  EXPECT_EQ(describe_early_stop(recipe),
            "after 1 successive test in which test-loss does not improve by more than 0.01");
  recipe.ema.decay = 0.9;
  recipe.early_stop->patience = 3;
  EXPECT_EQ(describe_early_stop(recipe),
            "after 3 successive tests in which test-loss of the EMA does not improve by more than 0.01");
  EarlyStopping observer(*parse_early_stop("test-accuracy:1:0"), nullptr);
  test(observer, 5, {{Split::test, right(3)}});
  test(observer, 10, {{Split::test, right(2)}});
  EXPECT_EQ(observer.message(10, 100),
            "early stopping after step 10 of 100: test-accuracy did not improve by more than 0 in 1 test. Best: 0.3750 "
            "after step 5");
  test(observer, 15, {{Split::test, right(2), right(3)}});
  EXPECT_EQ(observer.message(15, 100),
            "early stopping after step 15 of 100: test-accuracy of the EMA did not improve by more than 0 in 2 tests. "
            "Best: 0.3750 after step 5");
}

TEST_F(EarlyStoppingTest, a_resume_goes_on_counting) {
  const EarlyStop rule = *parse_early_stop("test-accuracy:2:0");
  TrainingState state;
  {
    EarlyStopping observer(rule, nullptr);
    EXPECT_FALSE(saved(observer).early_stop) << "there was no test";
    test(observer, 5, {{Split::test, right(3)}});
    test(observer, 10, {{Split::test, right(3)}});
    state = parse_training_state(training_state_text([&] {
      TrainingState valid = saved(observer);
      valid.recipe = nlohmann::json::object();
      return valid;
    }()));
  }
  EarlyStopping observer(rule, &state);
  EXPECT_FALSE(observer.ends_training());
  test(observer, 15, {{Split::test, right(2)}});
  EXPECT_TRUE(observer.ends_training());
  state = saved(observer);
  EXPECT_EQ(state.early_stop->tests, 2);
  EXPECT_TRUE(EarlyStopping(rule, &state).ends_training()) << "it is done already";
  state.progress.step = 17;  // the rule was stricter then
  EXPECT_FALSE(EarlyStopping(rule, &state).ends_training()) << "between two tests";
}

TEST_F(EarlyStoppingTest, with_another_rule_a_resume_judges_anew_or_by_the_same_tests) {
  TrainingState state;
  state.progress = {.step = 10, .epoch = 2, .samples = 40, .tested_step = 10};
  state.early_stop = EarlyStopState{"test-accuracy", 0.75, 5, 1};
  EXPECT_TRUE(EarlyStopping(*parse_early_stop("test-accuracy:1:0"), &state).ends_training());
  EXPECT_FALSE(EarlyStopping(*parse_early_stop("test-accuracy:2:0"), &state).ends_training());
  EarlyStopping other(*parse_early_stop("test-loss:1:0"), &state);
  EXPECT_FALSE(other.ends_training());
  test(other, 15, {{Split::test, right(1)}});
  EXPECT_FALSE(other.ends_training()) << "it is the first test by this metric";
  EXPECT_EQ(saved(other).early_stop->metric, "test-loss");
}

}  // namespace lockstep::early_stopping_test
