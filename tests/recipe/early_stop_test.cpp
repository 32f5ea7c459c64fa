#include "recipe/early_stop.hpp"

#include <gtest/gtest.h>

namespace lockstep::early_stop_test {

TEST(EarlyStopTest, a_text_comes_back) {
  EXPECT_EQ(parse_early_stop("test-accuracy:1:0"), (EarlyStop{Split::test, TestMetric::accuracy, 1, 0}));
  EXPECT_EQ(parse_early_stop("validation-loss:5:0.001"), (EarlyStop{Split::validation, TestMetric::loss, 5, 0.001}));
  for (const char* text :
       {"test-accuracy:1:0", "test-loss:2:0.5", "validation-accuracy:30:0.001", "validation-loss:1000000:1e-06"}) {
    EXPECT_EQ(early_stop_text(parse_early_stop(text).value()), text);
  }
  EXPECT_EQ(metric_name({Split::validation, TestMetric::accuracy}), "validation-accuracy");
}

TEST(EarlyStopTest, other_texts_are_no_rules) {
  for (const char* text : {"",
                           ":",
                           "::",
                           "test-accuracy",
                           "test-accuracy:1",
                           "test-accuracy:1:",
                           "test-accuracy::0",
                           ":1:0",
                           "test-accuracy:0:0",
                           "test-accuracy:-1:0",
                           "test-accuracy:1.5:0",
                           "test-accuracy:1000001:0",
                           "test-accuracy:1:-0.1",
                           "test-accuracy:1:nan",
                           "test-accuracy:1:inf",
                           "test-accuracy:1:0:0",
                           "test-accuracy:1:0 ",
                           " test-accuracy:1:0",
                           "test-accuracy:1 :0",
                           "train-loss:1:0",
                           "accuracy:1:0",
                           "test-top5:1:0",
                           "Test-loss:1:0",
                           "none"}) {
    EXPECT_EQ(parse_early_stop(text), std::nullopt) << text;
  }
}

}  // namespace lockstep::early_stop_test
