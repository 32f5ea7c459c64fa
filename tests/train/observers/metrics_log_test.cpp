#include "train/observers/metrics_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "support/messages.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::metrics_log_test {

using testing::HasSubstr;

class MetricsLogTest : public testing::Test {
 protected:
  std::string text() const { return read_file(file_, 1 << 20); }

  TemporaryFolder folder_;
  FolderLock lock_{folder_.path() / "run", "--output"};
  const std::filesystem::path file_ = folder_.path() / "run" / "metrics.jsonl";
};

TEST_F(MetricsLogTest, goes_on_where_the_file_ends) {
  std::ofstream(file_) << "before\n";
  MetricsLog log(lock_);
  log.append("one");
  EXPECT_EQ(text(), "before\none\n") << "at once: people watch it";
  log.append("two");
  EXPECT_EQ(text(), "before\none\ntwo\n");
}

// The lines went into the backup, too.
TEST_F(MetricsLogTest, a_hard_link_is_broken_and_a_backup_stays_as_it_is) {
  std::ofstream(file_) << "before\n";
  const std::filesystem::path backup = folder_.path() / "backup";
  std::filesystem::create_hard_link(file_, backup);
  MetricsLog log(lock_);
  log.append("one");
  EXPECT_EQ(text(), "before\none\n");
  EXPECT_EQ(read_file(backup, 100), "before\n");
}

// A disk that was full when a line was due ended the training.
TEST_F(MetricsLogTest, what_finds_no_room_is_told_once_and_written_later) {
  MetricsLog log(lock_);
  const std::string one(10'000, '1');  // what is captured goes into a file too
  log.append(one);
  testing::internal::CaptureStderr();
  {
    const NoRoomBeyond limit(one.size() + 3);
    log.append("two");
    log.append("three");
    EXPECT_EQ(text(), one + "\n") << "no half of a line";
    EXPECT_FALSE(log.flush());
    EXPECT_EQ(log.lines_left(), 2);
  }
  const std::string warning = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(warning.starts_with(log::prefix() + "  ")) << warning;
  expect_message(warning.substr(log::prefix().size() + 2), {"'" + file_.string() + "'"});
  testing::internal::CaptureStdout();
  log.append("four");
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("'" + file_.string() + "'"));
  EXPECT_EQ(text(), one + "\ntwo\nthree\nfour\n");
  EXPECT_EQ(log.lines_left(), 0);
}

TEST_F(MetricsLogTest, lines_of_a_file_that_was_removed_are_in_the_next_one) {
  MetricsLog log(lock_);
  log.append("one");
  std::filesystem::remove(file_);
  log.append("two");
  EXPECT_EQ(text(), "one\ntwo\n");
  std::filesystem::remove_all(file_.parent_path());
  log.append("three");
  EXPECT_EQ(text(), "one\ntwo\nthree\n");
}

TEST_F(MetricsLogTest, a_file_that_an_editor_wrote_anew_is_gone_on_with) {
  MetricsLog log(lock_);
  log.append("one");
  write_file_atomically(file_, "edited\n");
  log.append("two");
  EXPECT_EQ(text(), "edited\ntwo\n");
}

// A pipe made the start wait for ever; a link led out of the folder.
TEST_F(MetricsLogTest, neither_a_pipe_nor_a_link_is_written_to) {
  ::mkfifo(file_.c_str(), 0666);
  expect_error(Failure::usage, {"--output", file_.string()}, [&] { MetricsLog log(lock_); });
  std::filesystem::remove(file_);
  const std::filesystem::path target = folder_.path() / "target";
  std::ofstream(target) << "mine";
  std::filesystem::create_symlink(target, file_);
  expect_error(Failure::usage, {"--output", file_.string()}, [&] { MetricsLog log(lock_); });
  EXPECT_EQ(read_file(target, 100), "mine");
}

}  // namespace lockstep::metrics_log_test
