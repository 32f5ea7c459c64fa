// One process makes a file, others that set out to make it see so; and what a killed one left is in nobody's way.
#include "base/io/claimed_file.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <system_error>

#include "base/io/file.hpp"
#include "support/special_files.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class ClaimedFileTest : public testing::Test {
 protected:
  static void write(const ClaimedFile& file, std::string_view text) {
    ASSERT_EQ(::write(file.descriptor(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  TemporaryFolder folder_;
  fs::path name_ = folder_.path() / ".making";
  fs::path path_ = folder_.path() / "made";
};

TEST_F(ClaimedFileTest, one_has_the_claim_until_it_publishes_or_gives_up) {
  std::unique_ptr<ClaimedFile> first = ClaimedFile::claim(name_);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(ClaimedFile::claim(name_), nullptr);
  write(*first, "half");
  first.reset();
  EXPECT_TRUE(is_absent(name_));
  const std::unique_ptr<ClaimedFile> second = ClaimedFile::claim(name_);
  ASSERT_NE(second, nullptr);
  write(*second, "whole");
  second->publish(path_);
  EXPECT_TRUE(is_absent(name_));
  // The name is free: a claim on it has nothing to do with what was published.
  EXPECT_NE(ClaimedFile::claim(name_), nullptr);
  EXPECT_EQ(read_file(path_, 10), "whole");
}

TEST_F(ClaimedFileTest, what_a_killed_process_left_is_begun_again) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto claimed = ClaimedFile::claim(name_);
    write(*claimed, "half, and longer than what comes");
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_FALSE(is_absent(name_));
  const std::unique_ptr<ClaimedFile> claimed = ClaimedFile::claim(name_);
  ASSERT_NE(claimed, nullptr);
  write(*claimed, "whole");
  claimed->publish(path_);
  EXPECT_EQ(read_file(path_, 10), "whole");
}

TEST_F(ClaimedFileTest, what_was_planted_under_the_name_is_not_touched) {
  const WithinSeconds limit(20);
  write_file_atomically(path_, "precious");
  fs::create_symlink(path_, name_);
  EXPECT_THROW(ClaimedFile::claim(name_), std::system_error);
  EXPECT_EQ(read_file(path_, 10), "precious");
  for (const SpecialFile kind : all_special_files) {
    const SpecialFileAt planted(kind, name_);
    EXPECT_THROW(ClaimedFile::claim(name_), std::system_error) << planted.name();
  }
}

}  // namespace
}  // namespace lockstep
