#include "train/run_summary.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"
#include "train/inspection.hpp"

namespace lockstep::run_summary_test {

class RunSummaryTest : public testing::Test {
 protected:
  nlohmann::json json() const { return nlohmann::json::parse(read_file(file_, 100'000)); }
  void leave(const std::string& text) const { write_file_atomically(file_, text); }
  // What `inspect` says of the state.
  std::string state() const {
    const std::string text = describe_file(folder_);
    const std::size_t at = text.find("state      ") + 11;
    return text.substr(at, text.find('\n', at) - at);
  }

  TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path() / "run";
  const std::filesystem::path file_ = folder_ / "summary.json";
  std::optional<FolderLock> lock_{std::in_place, folder_, "--output"};
};

TEST_F(RunSummaryTest, a_training_has_a_start_and_an_end) {
  RunSummary summary(*lock_);
  EXPECT_FALSE(summary.is_unfinished());
  summary.write(RunState::running, {{"model", "lenet"}});
  EXPECT_EQ(json()["state"], "running");
  EXPECT_EQ(json()["ended"], nullptr);
  EXPECT_EQ(json()["started"].get<std::string>().size(), std::string("2026-11-22T07:20:00Z").size());
  EXPECT_EQ(json()["interruptions"], nlohmann::json::array());
  summary.write(RunState::done, {{"model", "lenet"}});
  EXPECT_EQ(json()["state"], "done");
  EXPECT_LE(json()["started"], json()["ended"]);
}

TEST_F(RunSummaryTest, attempts_that_did_not_end_it_are_interruptions) {
  leave(R"({"state": "stopped", "started": "2026-01-02T03:04:05Z", "interruptions": []})");
  {
    RunSummary summary(*lock_);
    EXPECT_TRUE(summary.is_unfinished());
    summary.go_on(7, 1);
    summary.write(RunState::running, {{"ranks", 1}, {"device", "cpu: one"}});
  }
  RunSummary summary(*lock_);
  summary.go_on(9, 1);
  summary.write(RunState::done, {{"ranks", 2}, {"device", "cpu: another"}});
  EXPECT_EQ(json()["started"], "2026-01-02T03:04:05Z");
  ASSERT_EQ(json()["interruptions"].size(), 2U);
  EXPECT_EQ(json()["interruptions"][0]["state"], "stopped");
  EXPECT_EQ(json()["interruptions"][0]["step"], 7);
  EXPECT_EQ(json()["interruptions"][1]["state"], "killed");
  EXPECT_EQ(json()["interruptions"][1]["step"], 9);
  // What an attempt ran on was forgotten as soon as the next one began.
  EXPECT_FALSE(json()["interruptions"][0].contains("ranks"));  // an earlier version's
  EXPECT_EQ(json()["interruptions"][1]["ranks"], 1);
  EXPECT_EQ(json()["interruptions"][1]["device"], "cpu: one");

  // Done already: the same command writes it anew, and nothing was interrupted.
  RunSummary again(*lock_);
  EXPECT_FALSE(again.is_unfinished());
  again.go_on(9, 0);
  again.write(RunState::done, {});
  EXPECT_EQ(json()["started"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(json()["interruptions"].size(), 2U);
}

// Nothing showed that the learning rate had changed its schedule in the middle.
TEST_F(RunSummaryTest, a_done_attempt_that_gets_more_steps_is_recorded_with_the_steps_it_planned) {
  leave(R"({"state": "done", "step": 9, "steps": 9, "interruptions": []})");
  RunSummary summary(*lock_);
  summary.go_on(9, 3);
  summary.write(RunState::running, {});
  ASSERT_EQ(json()["interruptions"].size(), 1U);
  EXPECT_EQ(json()["interruptions"][0]["state"], "done");
  EXPECT_EQ(json()["interruptions"][0]["step"], 9);
  EXPECT_EQ(json()["interruptions"][0]["steps"], 9);
}

// A pipe or a folder by that name kept a good checkpoint from going on.
TEST_F(RunSummaryTest, what_cannot_be_read_is_no_summary) {
  std::filesystem::create_directory(file_);
  EXPECT_FALSE(RunSummary(*lock_).is_unfinished());
}

TEST_F(RunSummaryTest, interruptions_of_unknown_origin_are_left_out) {
  leave(R"({"state": "stopped", "interruptions": [1, null, {"state": 7},
        {"state": "killed", "step": "3", "resumed": "2026-01-02T03:04:05Z"}, {"state": "killed", "step": 3, "resumed": 7},
        {"state": "killed", "step": 3, "resumed": "2026-01-02T03:04:05Z"}]})");
  RunSummary summary(*lock_);
  summary.go_on(7, 1);
  summary.write(RunState::running, {});
  ASSERT_EQ(json()["interruptions"].size(), 2U);
  EXPECT_EQ(json()["interruptions"][0]["step"], 3);
}

TEST_F(RunSummaryTest, results_have_plain_names_of_files_that_not_every_run_has) {
  leave(R"({"state": "done", "results": ["a.h5", "../b", "/etc/passwd", "", ".", "..", ".c", "d/e", 7, "lock",
        "summary.json", "metrics.jsonl", "checkpoints", "set-aside-1", "pass-00001.h5"]})");
  EXPECT_EQ(RunSummary(*lock_).results(), (std::vector<std::string>{"a.h5", "pass-00001.h5"}));
  leave(R"({"state": "done", "results": "a.h5"})");
  EXPECT_TRUE(RunSummary(*lock_).results().empty());
}

// The oldest stayed, so the last ones, which people look for, were lost.
TEST_F(RunSummaryTest, of_many_interruptions_the_last_thousand_stay) {
  nlohmann::json earlier = {{"state", "stopped"}, {"interruptions", nlohmann::json::array()}};
  for (int step = 0; step < 1200; ++step) {
    earlier["interruptions"].push_back({{"state", "killed"}, {"step", step}, {"resumed", "2026-01-02T03:04:05Z"}});
  }
  leave(earlier.dump());
  RunSummary summary(*lock_);
  summary.go_on(2000, 1);
  summary.write(RunState::running, {});
  ASSERT_EQ(json()["interruptions"].size(), 1000U);
  EXPECT_EQ(json()["interruptions"][0]["step"], 201);
  EXPECT_EQ(json()["interruptions"][999]["step"], 2000);
}

TEST_F(RunSummaryTest, a_folder_that_another_job_has_is_not_written_into) {
  RunSummary summary(*lock_);
  write_file_atomically(folder_ / "lock", "another's\n");
  EXPECT_THROW(summary.write(RunState::running, {}), Error);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(RunSummaryTest, what_is_no_summary_is_not_gone_on_with) {
  for (const char* text : {"", "{", "[]", "{}", R"({"state": 3})", R"({"state": "killed"})"}) {
    leave(text);
    RunSummary summary(*lock_);
    EXPECT_FALSE(summary.is_unfinished()) << text;
    summary.go_on(3, 1);
    summary.write(RunState::running, {});
    EXPECT_EQ(json()["interruptions"].size(), 0U);
  }
  for (const char* started : {"17", R"("yesterday")"}) {
    leave(fmt::format(R"({{"state": "failed", "started": {}, "interruptions": "many"}})", started));
    RunSummary summary(*lock_);
    EXPECT_TRUE(summary.is_unfinished());
    summary.go_on(3, 1);
    summary.write(RunState::running, {});
    EXPECT_EQ(json()["started"].get<std::string>().size(), utc_time().size());
    EXPECT_EQ(json()["interruptions"].size(), 1U);
  }
}

// A killed training said nothing of it.
TEST_F(RunSummaryTest, running_without_a_living_lock_is_called_killed) {
  const auto is_killed = [&] { return state().starts_with("killed "); };
  RunSummary summary(*lock_);
  summary.write(RunState::running, {{"model", "lenet"}, {"data", "synthetic"}, {"steps", 8}, {"step", 3}});
  EXPECT_TRUE(state().starts_with("running: ")) << state();
  lock_.reset();
  EXPECT_TRUE(is_killed()) << state();
  leave(read_file(file_, 10'000));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  LockHolder dead = this_lock_holder();
  dead.process = child;
  write_file_atomically(folder_ / "lock", lock_holder_text(dead) + "\n00000000000000000000\n");
  EXPECT_TRUE(is_killed()) << state();
  dead.host = "elsewhere";
  write_file_atomically(folder_ / "lock", lock_holder_text(dead) + "\n00000000000000000000\n");
  EXPECT_TRUE(state().starts_with("running, or killed") && state().ends_with(describe_lock_holder(dead))) << state();
  write_file_atomically(folder_ / "lock", "");
  EXPECT_TRUE(is_killed()) << state();
}

TEST_F(RunSummaryTest, inspect_says_how_a_training_stands) {
  RunSummary summary(*lock_);
  summary.write(RunState::stopped, {{"model", "lenet"},
                                    {"data", "synthetic\x1b[31m"},
                                    {"steps", 8},
                                    {"step", 3},
                                    {"test_accuracy", 0.5},
                                    {"best_accuracy", nullptr},
                                    {"best_step", nullptr},
                                    {"weights_hash", "0123456789abcdef"},
                                    {"command_line", {"train_cifar", "--data", "d\x1b[31m", 7}}});
  const std::string text = describe_file(folder_);
  for (const char* line :
       {"\n  state      stopped; the same command resumes it\n", "\n  step       3 of 8\n", "\n  test       50.00 %\n",
        "\n  best       not measured\n", "\n  weights    0123456789abcdef\n", "\n  attempts   1\n",
        "train_cifar --data $'d\\x1b[31m'"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  leave(
      R"({"state": "failed", "best_accuracy": 0.75, "best_step": 5, "started": "then", "ended": "2026-01-02T03:04:05Z",
        "weights_hash": null, "ranks": 2, "device": "cpu: two", "precision": "bf16", "command_line": ["train_cifar"],
        "interruptions": [1, {"state": "killed", "step": 4, "resumed": "2026-01-02T03:04:05Z", "ranks": 1,
                              "device": "cpu: one"},
                          {"state": "done", "step": 4, "resumed": "2026-01-02T03:04:05Z", "steps": 4}]})");
  const std::string failed = describe_file(folder_);
  for (const char* line :
       {"\n  state      failed (failure.json states why); the same command resumes it\n",
        "\n  best       75.00 % after step 5\n", "\n  started    -\n  ended      2026-01-02T03:04:05Z\n",
        "\n  weights    -\n", "\n  attempts   3\n    1  killed; the next resumed from step 4 (1 rank, cpu: one)\n",
        "\n    2  done (planned steps: 4); the next resumed from step 4\n  ranks      2 (by mpirun or srun)\n",
        "\n  ranks      2 (by mpirun or srun)\n  device     cpu: two\n  precision  bf16\n",
        "\n  command    train_cifar"}) {
    EXPECT_NE(failed.find(line), std::string::npos) << line << failed;
  }
  nlohmann::json often = {{"state", "done"}, {"interruptions", nlohmann::json::array()}};
  for (int step = 1; step <= 7; ++step) {
    often["interruptions"].push_back({{"state", "killed"}, {"step", step}, {"resumed", "2026-01-02T03:04:05Z"}});
  }
  leave(often.dump());
  EXPECT_NE(describe_file(folder_).find(
                "\n  attempts   8\n    the first 2 not shown\n    3  killed; the next resumed from step 3\n"),
            std::string::npos);
  leave(R"({"state": "done", "test_accuracy": 0.5, "validation_accuracy": 0.625, "best_accuracy": 0.75, "best_step": 5,
        "best_split": "validation"})");
  const std::string done = describe_file(folder_);
  EXPECT_NE(
      done.find("\n  test       50.00 %\n  validation 62.50 %\n  best       75.00 % on the validation split after "
                "step 5\n"),
      std::string::npos)
      << done;
  leave("{}");
  expect_error(Failure::bad_data, {file_.string()}, [this] { describe_file(folder_); });
}

}  // namespace lockstep::run_summary_test
