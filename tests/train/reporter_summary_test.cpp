// What summary.json says of tests and attempts, and when it cannot be written.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"
#include "train/reporter.hpp"

namespace lockstep {
namespace {

Evaluation right(std::int64_t of_eight) {
  Evaluation evaluation;
  evaluation.classes = 2;
  evaluation.samples = 8;
  evaluation.confusion = {of_eight, 8 - of_eight, 0, 0};
  return evaluation;
}

class ReporterSummaryTest : public testing::Test {
 protected:
  FolderLock* lock() {
    if (!lock_) lock_.emplace(folder_, "--output");
    return &*lock_;
  }
  nlohmann::json summary() const { return nlohmann::json::parse(read_file(folder_ / "summary.json", 10'000)); }

  TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path() / "run";
  const TrainingLength length_{2, 5};

 private:
  std::optional<FolderLock> lock_;
};

TEST_F(ReporterSummaryTest, the_summary_knows_the_best_test_and_its_step_also_after_a_kill) {
  {
    Reporter reporter(0, lock(), {4, 5}, 5);
    reporter.start();
    reporter.write_summary(RunState::running, {});
    EXPECT_EQ(summary()["best_accuracy"], nullptr);
    EXPECT_EQ(summary()["test_accuracy"], nullptr);
    EXPECT_EQ(summary()["step"], 0);
    reporter.step({0, 4}, {1, 1, 4}, 0.1, 0);
    reporter.test({0, 4}, right(6), 1);
    reporter.write_summary(RunState::running, {});
    reporter.step({1, 9}, {1, 1, 4}, 0.1, 0);
    reporter.test({1, 9}, right(4), 1);
    reporter.write_summary(RunState::running, {});
  }
  EXPECT_DOUBLE_EQ(summary()["best_accuracy"], 0.75);
  EXPECT_EQ(summary()["best_step"], 5);
  EXPECT_DOUBLE_EQ(summary()["test_accuracy"], 0.5);
  EXPECT_EQ(summary()["step"], 10);
  TrainingState state;
  state.progress = {.step = 10, .epoch = 2, .samples = 40, .tested_step = 10};
  state.report.test_accuracy = state.report.score = 0.5;
  state.report.test_loss = 0.125;
  Reporter reporter(0, lock(), {4, 5}, 5, &state);
  reporter.start();
  EXPECT_DOUBLE_EQ(reporter.state().score, 0.5);
  reporter.write_summary(RunState::running, {});
  EXPECT_DOUBLE_EQ(summary()["best_accuracy"], 0.75);
  EXPECT_EQ(summary()["best_step"], 5);
  EXPECT_DOUBLE_EQ(summary()["test_accuracy"], 0.5);
  EXPECT_DOUBLE_EQ(summary()["test_loss"], 0.125);
  EXPECT_EQ(summary()["step"], 10);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "set-aside-1")) << "it is the same training";
  EXPECT_EQ(summary()["interruptions"].size(), 1U);
  EXPECT_EQ(summary()["interruptions"][0]["state"], "killed");
  EXPECT_EQ(summary()["interruptions"][0]["step"], 10);
  // The validation split judges, where there is one.
  reporter.step({2, 14}, {1, 1, 4}, 0.1, 0);
  reporter.test({2, 14}, right(8), 1);
  reporter.validation({2, 14}, right(7), 1);
  reporter.write_summary(RunState::done, {});
  EXPECT_DOUBLE_EQ(summary()["best_accuracy"], 0.875);
  EXPECT_EQ(summary()["best_step"], 15);
}

// As the folder of checkpoints keeps the last of equals.
TEST_F(ReporterSummaryTest, of_two_tests_as_good_the_last_is_the_best) {
  {
    Reporter reporter(0, lock(), {4, 5}, 5);
    reporter.start();
    for (const std::int64_t epoch : {0, 1}) {
      reporter.step({epoch, 5 * epoch + 4}, {1, 1, 4}, 0.1, 0);
      reporter.test({epoch, 5 * epoch + 4}, right(6), 1);
      reporter.write_summary(RunState::running, {});
    }
  }
  EXPECT_EQ(summary()["best_step"], 10);
}

// Where a run was killed between two tests, its lines are all that is left of them.
TEST_F(ReporterSummaryTest, the_best_test_is_found_in_the_lines_of_the_attempts_before) {
  const auto best_in = [this](const std::string& lines) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "metrics.jsonl") << lines;
    TrainingState state;
    state.progress = {.step = 17, .epoch = 3, .samples = 68, .tested_step = 15};
    state.report.test_accuracy = state.report.score = 0.25;
    Reporter reporter(0, lock(), {4, 5}, 5, &state);
    reporter.start();
    reporter.write_summary(RunState::running, {});
    const nlohmann::json summary = this->summary();
    return std::pair(summary["best_accuracy"].get<double>(), summary["best_step"].get<int>());
  };
  const std::string training = R"({"kind":"training","epoch":1,"step":5,"accuracy":0.99})"
                               "\n";
  const std::string tests = training + R"({"kind":"test","epoch":1,"step":5,"accuracy":0.5})"
                                       "\n"
                                       R"({"kind":"test","epoch":1,"step":10,"accuracy":0.5})"
                                       "\n";
  EXPECT_EQ(best_in(tests), std::pair(0.5, 10)) << "the last of two";
  EXPECT_EQ(best_in(tests + R"({"kind":"validation","epoch":1,"step":10,"accuracy":0.375})"
                            "\n"),
            std::pair(0.375, 10))
      << "the validation split judges";
  EXPECT_EQ(best_in(""), std::pair(0.25, 15)) << "the checkpoint's own, where no lines are left";
}

TEST_F(ReporterSummaryTest, a_test_without_a_right_answer_is_a_test) {
  Reporter reporter(0, lock(), length_, 5);
  reporter.start();
  reporter.test({0, 4}, right(0), 1);
  reporter.write_summary(RunState::running, {});
  const nlohmann::json summary = this->summary();
  EXPECT_EQ(summary["best_accuracy"], 0.0);
  EXPECT_EQ(summary["best_step"], 5);
}

TEST_F(ReporterSummaryTest, a_summary_without_room_is_told_once_and_fails_only_what_is_done) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  const nlohmann::json large = {{"command_line", std::string(100'000, 'x')}};
  const NoRoomBeyond limit(50'000);
  testing::internal::CaptureStderr();
  reporter.write_summary(RunState::running, large);
  reporter.write_summary(RunState::running, large);
  const std::string told = testing::internal::GetCapturedStderr();
  const std::string message = " summary.json ";
  EXPECT_NE(told.find(message), std::string::npos) << told;
  EXPECT_EQ(told.find(message), told.rfind(message)) << told;
  EXPECT_THROW(reporter.write_summary(RunState::done, large), Error);
}

TEST_F(ReporterSummaryTest, a_training_whose_folder_another_job_has_ends) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  write_file_atomically(folder_ / "lock", "another's\n");
  EXPECT_THROW(reporter.write_summary(RunState::running, {}), Error);
}

// Its start and its interruptions were forgotten.
TEST_F(ReporterSummaryTest, a_finished_training_that_goes_on_keeps_its_history) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "summary.json")
      << R"({"state": "done", "started": "2026-01-02T03:04:05Z", "interruptions": [)"
      << R"({"state": "killed", "step": 3, "resumed": "2026-01-02T03:04:05Z"}]})";
  TrainingState state;
  state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
  Reporter reporter(0, lock(), length_, 2, &state);
  reporter.start();
  reporter.write_summary(RunState::running, {});
  const nlohmann::json summary = this->summary();
  EXPECT_EQ(summary["started"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(summary["interruptions"].size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "set-aside-1" / "summary.json"));
}

}  // namespace
}  // namespace lockstep
