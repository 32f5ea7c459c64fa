#include "search/trial/trial_result.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/io/file.hpp"
#include "base/system_failure.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::trial_result_test {

using Kind = TrialEnd::Kind;
using testing::HasSubstr;
using testing::Not;

class TrialResultTest : public testing::Test {
 protected:
  TrialEnd end(int code, std::int64_t steps = 10, const std::vector<std::string>& lines = {}) const {
    return trial_end(space_, folder_.path(), steps, code, folder_.path() / "end.json", lines);
  }
  // With an exit report.
  TrialEnd reported(Failure failure, const std::string& sentence, int signal = 0) const {
    const nlohmann::json report = {{"code", static_cast<int>(failure)}, {"signal", signal}, {"sentence", sentence}};
    write("end.json", report.dump());
    return end(1);
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

TEST_F(TrialResultTest, a_custom_loop_reports_its_metrics_by_name) {
  space_.metric = {Split::validation, TestMetric::loss, "x"};
  write("metrics.jsonl", R"({"kind":"training","epoch":1,"step":10,"x":1}
{"kind":"validation","epoch":1,"step":10,"x":-2.5}
{"kind":"validation","epoch":1,"step":10,"y":3}
{"kind":"validation","epoch":1,"step":20,"x":null}
{"kind":"validation","epoch":1,"step":30,"x":"4"}
)");
  EXPECT_EQ(end(0).kind, Kind::reached);
  EXPECT_EQ(end(0).metric, -2.5);
  EXPECT_EQ(end(0, 20).code, static_cast<int>(Failure::diverged));
  EXPECT_EQ(end(0, 30).code, static_cast<int>(Failure::other));
  EXPECT_NE(end(0, 30).reason.find("no x after step 30"), std::string::npos) << end(0, 30).reason;
}

TEST_F(TrialResultTest, a_last_line_without_its_end_is_no_result) {
  write("metrics.jsonl", R"({"kind":"test","epoch":1,"step":10,"accuracy":0.3})");
  EXPECT_EQ(end(0).kind, Kind::ended);
  EXPECT_THAT(end(0).reason, HasSubstr("no newline"));
  EXPECT_THAT(end(0, 20).reason, HasSubstr("no newline"));
  write("metrics.jsonl", "{\"kind\":\"test\",\"epoch\":1,\"step\":10,\"accuracy\":0.3}\n");
  EXPECT_EQ(end(0).metric, 0.3);
  EXPECT_THAT(end(0, 20).reason, Not(HasSubstr("newline")));
}

// Python's json module writes what JSON does not have.
TEST_F(TrialResultTest, a_custom_loops_nan_is_not_finite) {
  space_.metric = {Split::validation, TestMetric::loss, "x"};
  write("metrics.jsonl", R"({"kind":"validation","epoch":1,"step":10,"x":NaN}
{"kind":"validation","epoch":1,"step":20,"x":-Infinity,"y":Infinity}
{"kind":"validation","epoch":1,"step":30,"x":3,"y":NaN}
)");
  EXPECT_EQ(end(0, 10).code, static_cast<int>(Failure::diverged));
  EXPECT_EQ(end(0, 20).code, static_cast<int>(Failure::diverged));
  EXPECT_EQ(end(0, 30).metric, 3);
}

TEST_F(TrialResultTest, a_signal_is_named) {
  EXPECT_THAT(end(138).reason, HasSubstr("SIGUSR1 (signal 10)"));
  EXPECT_THAT(end(137).reason, HasSubstr("SIGKILL (signal 9)"));
  EXPECT_THAT(end(129).reason, HasSubstr("SIGHUP (signal 1)"));
  EXPECT_THAT(end(139).reason, HasSubstr("SIGSEGV (signal 11)"));
  EXPECT_THAT(end(128 + 40).reason, Not(HasSubstr("Slurm")));
  EXPECT_THAT(end(135).reason, HasSubstr("/dev/shm is full"));  // a sentence that says more
}

TEST_F(TrialResultTest, the_code_decides_whose_fault_it_is) {
  for (const int code : {1, 3, 76, 139, 134}) EXPECT_EQ(end(code).kind, Kind::failed) << code;
  for (const int code : {2, 79, 136}) EXPECT_EQ(end(code).kind, Kind::ended) << code;
  EXPECT_EQ(end(70).kind, Kind::no_memory);
  EXPECT_EQ(end(137).kind, Kind::killed);
  EXPECT_EQ(end(71).kind, Kind::bad_place);
  for (const int code : {65, 126, 127, 132, 135}) EXPECT_EQ(end(code).kind, Kind::prevented) << code;
  for (const int code : {75, 143, 130, 129}) EXPECT_EQ(end(code).kind, Kind::stopped) << code;
}

// Healthy trials counted as the worst after a disk was full.
TEST_F(TrialResultTest, errors_of_the_machine_are_not_the_trials_fault) {
  for (const int error_number : {ENOSPC, EDQUOT, EFBIG, EMFILE, EIO}) {
    const Error error = system_failure("cannot write 'model.h5'", error_number, Access::writing);
    const TrialEnd end = reported(error.failure(), std::string("the training is complete, but: ") + error.what());
    EXPECT_EQ(end.kind, Kind::prevented) << error.what();
    EXPECT_NE(end.reason.find("model.h5"), std::string::npos);
  }
  const Error error = system_failure("cannot read 'model.h5'", ENOENT, Access::reading);
  EXPECT_EQ(reported(error.failure(), error.what()).kind, Kind::ended) << "a wrong file name of the trial's own";
  EXPECT_EQ(reported(Failure::diverged, "the loss is nan").kind, Kind::ended);
  EXPECT_EQ(reported(Failure::other, "rank 1 was killed", 9).kind, Kind::killed);
}

TEST_F(TrialResultTest, without_an_exit_report_the_last_lines_tell) {
  const TrialEnd full = end(1, 10, {"step 3", "cp: error writing 'a': No space left on device"});
  EXPECT_EQ(full.kind, Kind::prevented);
  EXPECT_NE(full.reason.find("error writing 'a'"), std::string::npos) << full.reason;
  EXPECT_EQ(end(1, 10, {"cannot write 'a': No space left on device. Free some space there."}).kind, Kind::prevented);
  EXPECT_EQ(end(1, 10, {"slurmstepd: error: Detected 1 oom_kill event in StepId=7.1."}).kind, Kind::no_memory);
  EXPECT_EQ(end(1, 10, {"srun: error: Node failure on n3"}).kind, Kind::bad_place);
  EXPECT_EQ(end(1, 10, {"srun: error: n3: task 0: Exited with exit code 1"}).kind, Kind::failed);
  EXPECT_THAT(end(1, 10, {"Traceback:", "RuntimeError: boom\u001b", "----"}).reason,
              HasSubstr("RuntimeError: boom\\x1b"));
  EXPECT_THAT(end(9, 10, {"RuntimeError: boom"}).reason, Not(HasSubstr("boom")));  // the signal is the reason
}

TEST_F(TrialResultTest, the_exit_report_is_better_than_the_code_of_a_launcher) {
  write("end.json", R"({"code":79,"sentence":"the loss is nan\u001b"})");
  EXPECT_EQ(end(1).kind, Kind::ended);
  EXPECT_EQ(end(1).code, 79);
  EXPECT_EQ(end(1).reason, "the loss is nan\\x1b");
}

}  // namespace lockstep::trial_result_test
