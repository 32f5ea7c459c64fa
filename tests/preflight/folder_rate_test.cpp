#include "preflight/folder_rate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/io/file.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::folder_rate_test {

namespace fs = std::filesystem;

TEST(FolderRate, a_folder_is_measured_and_left_as_it_was) {
  const TemporaryFolder folder;
  const FolderFacts facts = try_folder(folder.path());
  EXPECT_EQ(facts.fault, "");
  EXPECT_GT(facts.write_bytes_per_second, 0);
  EXPECT_GT(facts.read_bytes_per_second, 0);
  EXPECT_GT(facts.free_bytes, 0);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FolderRate, one_that_will_be_made_is_judged_by_the_nearest_above) {
  const TemporaryFolder folder;
  EXPECT_EQ(try_folder(folder.path() / "runs" / "a").fault, "");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FolderRate, one_that_takes_no_file_is_told) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "file";
  write_file_atomically(file, "x");
  EXPECT_THAT(try_folder(file).fault,
              testing::AllOf(testing::HasSubstr("'" + file.string()), testing::HasSubstr("Not a directory")));
}

TEST(FolderRate, a_disk_that_fills_up_is_told_and_nothing_stays) {
  const TemporaryFolder folder;
  const NoRoomBeyond room(3 << 20);
  const FolderFacts facts = try_folder(folder.path());
  EXPECT_THAT(facts.fault,
              testing::AllOf(testing::HasSubstr("'" + folder.path().string()), testing::HasSubstr("File too large")));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FolderRate, of_a_program_that_is_killed_nothing_stays) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const NoRoomBeyond room(3 << 20);
    std::signal(SIGXFSZ, SIG_DFL);  // the write that finds no room ends the process
    try_folder(folder.path());
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace lockstep::folder_rate_test
