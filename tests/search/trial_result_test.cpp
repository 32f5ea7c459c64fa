#include "search/trial_result.hpp"

#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Kind = TrialEnd::Kind;

class TrialResultTest : public testing::Test {
 protected:
  TrialEnd end(int code, std::int64_t steps = 10) const {
    return trial_end(space_, folder_.path(), steps, code, folder_.path() / "end.json");
  }
  void write(const char* name, std::string_view text) const { write_file_atomically(folder_.path() / name, text); }

  TemporaryFolder folder_;
  Space space_;
};

TEST_F(TrialResultTest, the_metric_is_that_of_the_test_at_the_rung) {
  write("metrics.jsonl",
        R"({"kind":"test","epoch":1,"step":5,"loss":2.5,"accuracy":0.3,"ema_accuracy":0.6}
{"kind":"training","epoch":2,"step":10,"loss":1.5,"accuracy":0.4}
{"kind":"test","epoch":2,"step":10,"loss":2.25,"accuracy":0.5,"ema_accuracy":0.75}
{"kind":"validation","epoch":2,"step":10,"loss":2.75,"accuracy":0.25}
)");
  EXPECT_EQ(end(0).metric, 0.5);
  EXPECT_EQ(end(0).kind, Kind::reached);
  EXPECT_EQ(end(0, 5).metric, 0.3);
  space_.metric = {Split::validation, TestMetric::loss};
  EXPECT_EQ(end(0).metric, 2.75);
  EXPECT_EQ(end(0, 5).kind, Kind::ended);  // there was no validation
  space_.metric = {};
  write("summary.json", R"({"state":"done","recipe":{"ema":0.9}})");
  EXPECT_EQ(end(0).metric, 0.75);
}

TEST_F(TrialResultTest, a_metric_that_is_not_finite_has_diverged) {
  write("metrics.jsonl", R"({"kind":"test","epoch":2,"step":10,"loss":null,"accuracy":0.1}
)");
  space_.metric.value = TestMetric::loss;
  EXPECT_EQ(end(0).kind, Kind::ended);
  EXPECT_EQ(end(0).code, 79);
}

TEST_F(TrialResultTest, the_code_decides_about_a_restart) {
  EXPECT_EQ(end(137).kind, Kind::failed);
  EXPECT_EQ(end(76).kind, Kind::failed);
  for (const int code : {2, 65, 70, 79, 127}) EXPECT_EQ(end(code).kind, Kind::ended) << code;
  EXPECT_EQ(end(75).kind, Kind::stopped);
}

TEST_F(TrialResultTest, the_exit_report_is_better_than_the_code_of_a_launcher) {
  write("end.json", R"({"code":79,"sentence":"the loss is nan\u001b"})");
  EXPECT_EQ(end(1).kind, Kind::ended);
  EXPECT_EQ(end(1).code, 79);
  EXPECT_EQ(end(1).reason, "the loss is nan\\x1b");
}

}  // namespace
}  // namespace lockstep
