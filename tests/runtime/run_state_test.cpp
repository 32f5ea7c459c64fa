#include "run/run_state.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/io/file.hpp"
#include "runtime/failure/failure_report.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::run_state_test {

constexpr std::array all = {RunState::running, RunState::stopped, RunState::done, RunState::failed, RunState::diverged};

class RunStateTest : public testing::Test {
 protected:
  void write(RunState state) const {
    write_file_atomically(file_, summary_text(state, {{"model", "lenet"}, {"steps", 3}}));
  }
  std::string text() const { return read_file(file_, 10'000); }

  TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "summary.json";
};

TEST_F(RunStateTest, the_state_is_the_first_line_and_as_long_as_any_other) {
  for (const RunState state : all) {
    const std::string text = summary_text(state, {{"model", "lenet"}, {"steps", 3}});
    EXPECT_EQ(text.size(), summary_text(RunState::diverged, {{"model", "lenet"}, {"steps", 3}}).size());
    EXPECT_TRUE(text.starts_with("{\n \"state\": \"" + std::string(name_of(state)) + '"')) << text;
    const nlohmann::json json = nlohmann::json::parse(text);
    EXPECT_EQ(json["state"], name_of(state));
    EXPECT_EQ(json["model"], "lenet");
    EXPECT_EQ(json.size(), 3U);
    EXPECT_EQ(run_state_of(name_of(state)), state);
  }
  EXPECT_EQ(run_state_of("killed"), std::nullopt);
}

TEST_F(RunStateTest, a_running_training_is_marked_as_failed_and_nothing_else_changes) {
  write(RunState::running);
  mark_failed(file_.c_str());
  EXPECT_EQ(text(), summary_text(RunState::failed, {{"model", "lenet"}, {"steps", 3}}));
}

TEST_F(RunStateTest, a_running_training_is_marked_as_stopped_likewise) {
  write(RunState::running);
  mark_stopped(file_.c_str());
  const std::string stopped = summary_text(RunState::stopped, {{"model", "lenet"}, {"steps", 3}});
  EXPECT_EQ(text(), stopped);
  mark_failed(file_.c_str());
  EXPECT_EQ(text(), stopped);
}

TEST_F(RunStateTest, what_has_ended_otherwise_stands) {
  for (const RunState state : {RunState::stopped, RunState::done, RunState::diverged}) {
    write(state);
    const std::string before = text();
    mark_failed(file_.c_str());
    EXPECT_EQ(text(), before);
  }
  write_file_atomically(file_, "{}");
  mark_failed(file_.c_str());
  EXPECT_EQ(text(), "{}");
  mark_failed((folder_.path() / "nothing").c_str());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "nothing"));
}

TEST_F(RunStateTest, nothing_is_marked_through_a_link) {
  const std::filesystem::path other = folder_.path() / "other";
  write_file_atomically(other, summary_text(RunState::running, {{"steps", 3}}));
  const std::string before = read_file(other, 10'000);
  std::filesystem::create_symlink(other, file_);
  mark_failed(file_.c_str());
  EXPECT_EQ(read_file(other, 10'000), before);
}

TEST_F(RunStateTest, nothing_is_marked_in_a_file_with_several_hard_links) {
  write(RunState::running);
  const std::string before = text();
  std::filesystem::create_hard_link(file_, folder_.path() / "backup");
  mark_failed(file_.c_str());
  EXPECT_EQ(text(), before);
}

// A start that fails must not touch the summary of the training before.
TEST_F(RunStateTest, a_failure_marks_the_summary_of_its_own_training_alone) {
  failure_report::set_rank(0, "here");
  write(RunState::running);
  failure_report::set_folder(folder_.path());
  failure_report::write({1, 0, "it failed before its first step"});
  EXPECT_TRUE(text().find("running") != std::string::npos);
  failure_report::clear();
  failure_report::own_summary();
  failure_report::write({1, 0, "it failed"});
  EXPECT_TRUE(text().find("failed") != std::string::npos);
  failure_report::set_folder({});
}

}  // namespace lockstep::run_state_test
