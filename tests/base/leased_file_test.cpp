// One process makes a file, others that set out to make it see so; and what a killed one left is in nobody's way.
#include "base/io/leased_file.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <system_error>

#include "base/io/file.hpp"
#include "support/special_files.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::leased_file_test {

namespace fs = std::filesystem;

class LeasedFileTest : public testing::Test {
 protected:
  static void write(const LeasedFile& file, std::string_view text) {
    ASSERT_EQ(::write(file.descriptor(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  TemporaryFolder folder_;
  fs::path name_ = folder_.path() / ".making";
  fs::path path_ = folder_.path() / "made";
};

TEST_F(LeasedFileTest, one_has_the_lease_until_it_publishes_or_gives_up) {
  std::unique_ptr<LeasedFile> first = LeasedFile::lease(name_);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(LeasedFile::lease(name_), nullptr);
  write(*first, "half");
  first.reset();
  EXPECT_TRUE(is_absent(name_));
  const std::unique_ptr<LeasedFile> second = LeasedFile::lease(name_);
  ASSERT_NE(second, nullptr);
  write(*second, "whole");
  second->publish(path_);
  EXPECT_TRUE(is_absent(name_));
  // The name is free: a lease on it has nothing to do with what was published.
  EXPECT_NE(LeasedFile::lease(name_), nullptr);
  EXPECT_EQ(read_file(path_, 10), "whole");
}

TEST_F(LeasedFileTest, what_a_killed_process_left_is_begun_again) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto leased = LeasedFile::lease(name_);
    write(*leased, "half, and longer than what comes");
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_FALSE(is_absent(name_));
  const std::unique_ptr<LeasedFile> leased = LeasedFile::lease(name_);
  ASSERT_NE(leased, nullptr);
  write(*leased, "whole");
  leased->publish(path_);
  EXPECT_EQ(read_file(path_, 10), "whole");
}

// It was emptied, and its other name with it.
TEST_F(LeasedFileTest, a_hard_link_is_broken_and_its_other_name_keeps_its_content) {
  write_file_atomically(path_, "precious");
  fs::create_hard_link(path_, name_);
  std::unique_ptr<LeasedFile> leased = LeasedFile::lease(name_);
  ASSERT_NE(leased, nullptr);
  EXPECT_EQ(LeasedFile::lease(name_), nullptr);
  write(*leased, "new");
  EXPECT_EQ(read_file(path_, 10), "precious");
  EXPECT_EQ(read_file(name_, 10), "new");
  leased.reset();
  EXPECT_TRUE(is_absent(name_));
  EXPECT_EQ(fs::hard_link_count(path_), 1U);
}

// Another process's unfinished file was published, or removed, under the name that had been one's own.
TEST_F(LeasedFileTest, a_name_that_was_lost_is_neither_published_nor_removed) {
  std::unique_ptr<LeasedFile> first = LeasedFile::lease(name_);
  write(*first, "first");
  fs::remove(name_);
  const std::unique_ptr<LeasedFile> second = LeasedFile::lease(name_);
  ASSERT_NE(second, nullptr);
  write(*second, "half");
  EXPECT_FALSE(first->publish(path_));
  first.reset();
  EXPECT_TRUE(is_absent(path_));
  EXPECT_EQ(read_file(name_, 10), "half");
  EXPECT_TRUE(second->publish(path_));
}

TEST_F(LeasedFileTest, the_holder_of_a_lease_is_named) {
  EXPECT_EQ(describe_lease_holder(name_), "nobody");
  write_file_atomically(name_, "");
  const std::string user = describe_lease_holder(name_);
  EXPECT_TRUE(user.starts_with("user ")) << user;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto leased = LeasedFile::lease(name_);
    static_cast<void>(::write(ready[1], "x", 1) + 0);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const std::string process = user + ", process " + std::to_string(child);
  EXPECT_EQ(describe_lease_holder(name_), process);
  ::kill(child, SIGSTOP);
  ASSERT_EQ(::waitpid(child, nullptr, WUNTRACED), child);
  EXPECT_EQ(describe_lease_holder(name_), process + ", stopped");
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
}

// A job of another user ended, as it could not write to the unfinished file, while its owner copied.
TEST_F(LeasedFileTest, a_file_of_another_user_is_waited_for) {
  if (::geteuid() != 0) GTEST_SKIP() << "no right to be another user";
  write_file_atomically(name_, "");
  fs::permissions(name_, fs::perms::owner_read | fs::perms::owner_write);
  fs::permissions(folder_.path(), fs::perms::all);
  ASSERT_EQ(::seteuid(65534), 0);
  const std::unique_ptr<LeasedFile> leased = LeasedFile::lease(name_);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(leased, nullptr);
  EXPECT_FALSE(is_absent(name_));
}

TEST_F(LeasedFileTest, what_was_planted_under_the_name_is_not_touched) {
  const WithinSeconds limit(20);
  write_file_atomically(path_, "precious");
  fs::create_symlink(path_, name_);
  EXPECT_THROW(LeasedFile::lease(name_), std::system_error);
  EXPECT_EQ(read_file(path_, 10), "precious");
  for (const SpecialFile kind : all_special_files) {
    const SpecialFileAt planted(kind, name_);
    EXPECT_THROW(LeasedFile::lease(name_), std::system_error) << planted.name();
  }
}

}  // namespace lockstep::leased_file_test
