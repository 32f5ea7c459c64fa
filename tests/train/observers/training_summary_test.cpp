// What summary.json says of tests and attempts, and when it cannot be written.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"
#include "train/observers/reported_training.hpp"

namespace lockstep::training_summary_test {

Evaluation right(std::int64_t of_eight) {
  Evaluation evaluation;
  evaluation.classes = 2;
  evaluation.samples = 8;
  evaluation.confusion = {{{0, 0}, of_eight}, {{0, 1}, 8 - of_eight}};
  return evaluation;
}

class TrainingSummaryTest : public testing::Test {
 protected:
  FolderLock* lock() { return output_.lock(); }
  nlohmann::json summary() const { return output_.summary(); }

  TemporaryFolder temporary_;
  OutputFolder output_{temporary_.path() / "run"};
  const std::filesystem::path folder_ = output_.path();
  const TrainingLength length_{2, 5};
};

TEST_F(TrainingSummaryTest, the_summary_knows_the_best_test_and_its_step_also_after_a_kill) {
  {
    ReportedTraining training(lock(), {4, 5}, 5);
    training.summarize(*lock());
    EXPECT_EQ(summary()["best_accuracy"], nullptr);
    EXPECT_EQ(summary()["test_accuracy"], nullptr);
    EXPECT_EQ(summary()["step"], 0);
    training.step(4, {1, 1, 4});
    training.test(5, {{Split::test, right(6)}});
    training.step(9, {1, 1, 4});
    training.test(10, {{Split::test, right(4)}});
  }
  EXPECT_DOUBLE_EQ(summary()["best_accuracy"], 0.75);
  EXPECT_EQ(summary()["best_step"], 5);
  EXPECT_DOUBLE_EQ(summary()["test_accuracy"], 0.5);
  EXPECT_EQ(summary()["step"], 10);
  TrainingState state;
  state.progress = {.step = 10, .epoch = 2, .samples = 40, .tested_step = 10};
  state.report.test_accuracy = state.report.score = 0.5;
  state.report.test_loss = 0.125;
  ReportedTraining training(lock(), {4, 5}, 5, &state);
  EXPECT_DOUBLE_EQ(training.counters().state().score, 0.5);
  training.summarize(*lock(), Split::validation);
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
  training.step(14, {1, 1, 4});
  training.test(15, {{Split::test, right(8)}, {Split::validation, right(7)}});
  training.end();
  EXPECT_EQ(summary()["state"], "done");
  EXPECT_DOUBLE_EQ(summary()["best_accuracy"], 0.875);
  EXPECT_EQ(summary()["best_step"], 15);
  EXPECT_EQ(summary()["best_split"], "validation");
  EXPECT_DOUBLE_EQ(summary()["validation_accuracy"], 0.875);
}

// As the folder of checkpoints keeps the last of equals.
TEST_F(TrainingSummaryTest, of_two_tests_as_good_the_last_is_the_best) {
  {
    ReportedTraining training(lock(), {4, 5}, 5);
    training.summarize(*lock());
    for (const std::int64_t steps : {5, 10}) {
      training.step(steps - 1, {1, 1, 4});
      training.test(steps, {{Split::test, right(6)}});
    }
  }
  EXPECT_EQ(summary()["best_step"], 10);
}

// Where a run was killed between two tests, its lines are all that is left of them.
TEST_F(TrainingSummaryTest, the_best_test_is_found_in_the_lines_of_the_attempts_before) {
  const auto best_in = [this](const std::string& lines) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "metrics.jsonl") << lines;
    TrainingState state;
    state.progress = {.step = 17, .epoch = 3, .samples = 68, .tested_step = 15};
    state.report.test_accuracy = state.report.score = 0.25;
    ReportedTraining(lock(), {4, 5}, 5, &state).summarize(*lock());
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

TEST_F(TrainingSummaryTest, a_test_without_a_right_answer_is_a_test) {
  ReportedTraining training(lock(), length_, 5);
  training.summarize(*lock());
  training.test(5, {{Split::test, right(0)}});
  const nlohmann::json summary = this->summary();
  EXPECT_EQ(summary["best_accuracy"], 0.0);
  EXPECT_EQ(summary["best_step"], 5);
}

TEST_F(TrainingSummaryTest, a_summary_without_room_is_told_once_and_fails_only_what_is_done) {
  ReportedTraining training(lock(), length_, 2);
  const NoRoomBeyond limit(50'000);
  testing::internal::CaptureStderr();
  training.summarize(*lock(), Split::test, {{"command_line", std::string(100'000, 'x')}});
  training.test(5, {{Split::test, right(6)}});
  const std::string told = testing::internal::GetCapturedStderr();
  const std::string message = " summary.json ";
  EXPECT_NE(told.find(message), std::string::npos) << told;
  EXPECT_EQ(told.find(message), told.rfind(message)) << told;
  EXPECT_THROW(training.end(), Error);
}

TEST_F(TrainingSummaryTest, a_training_whose_folder_another_job_has_ends) {
  ReportedTraining training(lock(), length_, 2);
  write_file_atomically(folder_ / "lock", "another's\n");
  EXPECT_THROW(training.summarize(*lock()), Error);
}

// Its start and its interruptions were forgotten.
TEST_F(TrainingSummaryTest, a_finished_training_that_goes_on_keeps_its_history) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "summary.json")
      << R"({"state": "done", "steps": 5, "started": "2026-01-02T03:04:05Z", "interruptions": [)"
      << R"({"state": "killed", "step": 3, "resumed": "2026-01-02T03:04:05Z"}]})";
  TrainingState state;
  state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
  testing::internal::CaptureStdout();
  ReportedTraining(lock(), length_, 2, &state).summarize(*lock());
  const std::string log = testing::internal::GetCapturedStdout();
  EXPECT_NE(log.find("step 10 instead of 5; the learning rate"), std::string::npos) << log;
  const nlohmann::json summary = this->summary();
  EXPECT_EQ(summary["started"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(summary["interruptions"].size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "set-aside-1" / "summary.json"));
}

}  // namespace lockstep::training_summary_test
