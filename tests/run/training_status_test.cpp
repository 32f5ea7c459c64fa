#include "run/training_status.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "files/folder/folder_lock.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::training_status_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* summary = R"({
 "state": "running" ,
 "model": "lenet", "data": "digits", "step": 100, "steps": 400, "samples_per_second": 50.0, "test_accuracy": 0.5
})";
constexpr const char* report =
    R"({"kind":"training","epoch":2,"step":200,"steps":400,"samples":6400,"samples_per_second":64.0,"seconds":100})"
    "\n";

class TrainingStatusTest : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) const {
    fs::create_directories((folder.path() / name).parent_path());
    write_file_atomically(folder.path() / name, text);
  }
  std::string text() const { return status_text(training_status(folder.path())); }

  TemporaryFolder folder;
};

TEST_F(TrainingStatusTest, a_running_training_says_how_far_it_is) {
  write("summary.json", summary);
  write("metrics.jsonl", std::string(report) + R"({"kind":"test","epoch":2,"step":200,"accuracy":0.75})" + "\n");
  write("checkpoints/step-000000000150.h5", "x");
  write("checkpoints/step-000000000050.h5", "x");
  write("checkpoints/step-000000000999.h5.copy", "x");
  EXPECT_EQ(text(),
            "state       killed (no process holds the folder's lock); the same command resumes it\n"
            "training    lenet on digits\n"
            "step        200 of 400 (50.0 %)\n"
            "speed       64 samples/s\n"
            "checkpoint  step 150\n"
            "test        75.00 %");
  const FolderLock lock(folder.path(), "--output");
  EXPECT_THAT(text(), StartsWith("state       running: process "));
  EXPECT_THAT(text(), HasSubstr("speed       64 samples/s\ntime left   1:40\ncheckpoint  step 150\n"));
}

// The same command would have started from the beginning again, or from that file.
TEST_F(TrainingStatusTest, a_command_with_resume_does_not_continue_the_training) {
  for (const char* resume : {"never", "runs/a/checkpoints/step-000000000150.h5"}) {
    write("summary.json", fmt::format(R"({{"state": "stopped", "run": {{"resume": "{}"}}}})", resume));
    EXPECT_THAT(text(), StartsWith("state       stopped; the same command without --resume resumes it\n"));
  }
  write("summary.json", R"({"state": "stopped", "run": {"resume": "auto"}})");
  EXPECT_THAT(text(), StartsWith("state       stopped; the same command resumes it\n"));
}

// Whoever looked at the lock just before a training took it, and at its summary after that, called it killed.
TEST_F(TrainingStatusTest, a_training_that_begins_at_this_moment_is_not_killed) {
  std::optional<FolderLock> lock;
  const auto look = [&](const fs::path& path) {
    const FolderHolder holder = holder_of(path);
    if (!lock) {
      lock.emplace(path, "--output");
      write("summary.json", summary);
    }
    return holder;
  };
  const TrainingStatus status = training_status(folder.path(), "", look);
  EXPECT_EQ(status.summary.state, RunState::running);
  EXPECT_EQ(status.holder.kind, FolderHolder::Kind::here);
}

TEST_F(TrainingStatusTest, a_folder_without_a_training_is_not_begun) {
  EXPECT_EQ(text(), "state       not started\ncheckpoint  none");
  const FolderLock lock(folder.path(), "--output");
  EXPECT_THAT(text(), StartsWith("state       starting: process "));
}

// "not started", although its start had failed.
TEST_F(TrainingStatusTest, a_start_that_failed_is_told) {
  write("failure.json", R"({"code": 2, "sentence": "'d' does not exist."})");
  EXPECT_EQ(text(), "state       failed: 'd' does not exist.\ncheckpoint  none");
  write("failure.json", R"({"code": 75, "sentence": "stopped before the first step (SIGTERM): nothing was changed."})");
  EXPECT_THAT(text(), StartsWith("state       stopped before the first step (SIGTERM)"));
  write("failure.json", "nonsense");
  EXPECT_THAT(text(), StartsWith("state       not started\n"));
  write("failure.json", R"({"code": 2, "sentence": "'d' does not exist."})");
  write("summary.json", R"({"state": "done"})");
  EXPECT_THAT(text(), StartsWith("state       done\n"));
}

TEST_F(TrainingStatusTest, a_training_that_has_ended_has_no_time_left) {
  write("summary.json", R"({"state": "done", "step": 400, "steps": 400})");
  write("metrics.jsonl", report);
  EXPECT_EQ(text(), "state       done\nstep        400 of 400 (100.0 %)\ncheckpoint  none");
}

// "done", and "step 117 of 2340" below it.
TEST_F(TrainingStatusTest, what_ended_a_training_before_its_last_step_is_told) {
  const auto state = [&](int step, const char* ended, const char* recipe) {
    write("summary.json",
          fmt::format(R"({{"state": "done", "step": {}, "steps": 2340, "recipe": {}, "early_stop": {{"metric":
                          "validation-loss", "best": 1, "best_step": 39, "tests_without_improvement": 3, "ended": {}}}}})",
                      step, recipe, ended));
    return describe_state(training_status(folder.path()));
  };
  EXPECT_EQ(state(117, "true", "{}"),
            "done by early stopping after step 117 of 2340: validation-loss did not improve in 3 tests");
  EXPECT_EQ(state(117, "true", R"({"ema": 0.9})"),
            "done by early stopping after step 117 of 2340: validation-loss of the EMA did not improve in 3 tests");
  EXPECT_THAT(text(), HasSubstr("step        117 of 2340 (5.0 %)\n"));
  EXPECT_EQ(state(117, "false", "{}"), "done");
  EXPECT_EQ(state(117, "7", "[]"), "done");
  EXPECT_EQ(state(2340, "true", "{}"), "done") << "its last test came with its last step";
}

TEST_F(TrainingStatusTest, the_accuracy_of_the_EMA_is_called_so) {
  write("summary.json", R"({"state": "done", "test_accuracy": 0.5, "ema_test_accuracy": 0.625})");
  EXPECT_EQ(text(), "state       done\ncheckpoint  none\ntest        50.00 %, EMA 62.50 %");
  write("metrics.jsonl", R"({"kind":"test","epoch":2,"step":200,"accuracy":0.75,"ema_accuracy":0.875})"
                         "\n");
  EXPECT_THAT(text(), HasSubstr("\ntest        75.00 %, EMA 87.50 %"));
}

TEST_F(TrainingStatusTest, checkpoints_may_lie_elsewhere) {
  const TemporaryFolder other;
  write_file_atomically(other.path() / "step-000000000007.h5", std::string_view("x"));
  write("summary.json", R"({"state": "done", "run": {"checkpoints": ")" + other.path().string() + "\"}}");
  EXPECT_EQ(training_status(folder.path()).checkpoint_step, 7);
}

// Called from another folder it said: checkpoint none.
TEST_F(TrainingStatusTest, paths_of_a_run_are_looked_up_where_it_ran) {
  const fs::path run = folder.path() / "runs/a";
  write("runs/a/checkpoints/step-000000000007.h5", "x");
  write("runs/a/summary.json",
        R"({"state": "done", "run": {"output": "runs/a", "checkpoints": "runs/a/checkpoints"}})");
  EXPECT_EQ(training_status(run).checkpoint_step, 7);
  write("elsewhere/step-000000000009.h5", "x");
  write("runs/a/summary.json", R"({"state": "done", "run": {"output": "./runs/a/", "checkpoints": "elsewhere"}})");
  EXPECT_EQ(training_status(run).checkpoint_step, 9);
  write("runs/a/summary.json",
        R"({"state": "done", "run": {"output": ")" + run.string() + R"(", "checkpoints": "elsewhere"}})");
  EXPECT_EQ(training_status(run).checkpoint_step, std::nullopt);
  EXPECT_EQ(training_status(run, folder.path()).checkpoint_step, 9);
}

// Another training may have the name by now that this one had.
TEST_F(TrainingStatusTest, of_a_folder_that_was_moved_its_own_checkpoints_count) {
  const TemporaryFolder before;
  const std::string old = before.path().string();
  fs::create_directories(before.path() / "checkpoints");
  write_file_atomically(before.path() / "checkpoints" / "step-000000000009.h5", std::string_view("x"));
  for (const std::string& place : {std::string("checkpoints"), std::string("kept/all")}) {
    write((place + "/step-000000000007.h5").c_str(), "x");
    for (const std::string& end : {std::string(), std::string("/")}) {
      write("summary.json", R"({"state": "done", "run": {"output": ")" + old + end + R"(", "checkpoints": ")" + old +
                                "/./" + place + "\"}}");
      EXPECT_EQ(training_status(folder.path()).checkpoints, folder.path() / place);
      EXPECT_EQ(training_status(folder.path()).checkpoint_step, 7);
    }
  }
}

TEST_F(TrainingStatusTest, names_in_a_file_do_not_steer_the_terminal) {
  write("summary.json", R"({"state": "done", "model": "a\u001b[2Jb\nc", "data": "\u202ed"})");
  EXPECT_THAT(text(), HasSubstr("training    a\\x1b[2Jb\\x0ac on \\u202ed\n"));
}

}  // namespace lockstep::training_status_test
