#include "base/io/partial_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>

#include "base/io/file.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::partial_file_test {

namespace fs = std::filesystem;

TEST(PartialFileTest, names_lie_beside_the_file_and_differ_every_time) {
  std::set<fs::path> names;
  for (int i = 0; i < 1000; ++i) {
    const fs::path name = partial_path("/a/b/train-00000.h5");
    EXPECT_EQ(name.parent_path(), "/a/b");
    EXPECT_TRUE(name.filename().string().starts_with(".train-00000.h5.")) << name;
    EXPECT_TRUE(is_partial_name(name.filename().string())) << name;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 1000U);
}

TEST(PartialFileTest, only_names_of_ours_are_taken_for_ours) {
  EXPECT_TRUE(is_partial_name(".a.0123456789abcdef.lockstep-partial"));
  for (const char* name : {"", ".partial", "mine.partial", ".mine.4711.partial", ".lockstep-partial",
                           "a.0123456789abcdef.lockstep-partial", ".0123456789abcdef.lockstep-partial",
                           ".a.0123456789abcde.lockstep-partial", ".a.00123456789abcdef.lockstep-partial",
                           ".a.0123456789ABCDEF.lockstep-partial", ".a.0123456789abcdef.lockstep-partial.",
                           ".a.0123456789abcdef.partial"}) {
    EXPECT_FALSE(is_partial_name(name)) << name;
  }
}

TEST(PartialFileTest, a_name_as_long_as_a_name_may_be_is_cut) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / std::string(255, 'x');
  EXPECT_TRUE(is_partial_name(partial_path(file).filename().string()));
  EXPECT_EQ(partial_path(file).filename().string().size(), 255U);
  write_file_atomically(file, "text");
  EXPECT_EQ(read_file(file, 10), "text");
}

TEST(PartialFileTest, nothing_that_has_the_name_already_is_opened) {
  const TemporaryFolder folder;
  const fs::path target = folder.path() / "target";
  std::ofstream(target) << "precious";
  for (const fs::path& leads_to : {target, folder.path() / "nowhere"}) {
    const fs::path name = folder.path() / "name";
    fs::create_symlink(leads_to, name);
    EXPECT_EQ(create_new_file(name.c_str()), -1);
    EXPECT_EQ(errno, EEXIST);
    fs::remove(name);
  }
  EXPECT_EQ(create_new_file(target.c_str()), -1);
  EXPECT_FALSE(fs::exists(folder.path() / "nowhere"));
  EXPECT_EQ(read_file(target, 100), "precious");
}

TEST(PartialFileTest, a_new_file_has_the_mode_that_the_user_wants) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  const Descriptor file(create_new_file((folder.path() / "a").c_str()));
  const PartialFile secret = create_partial_file(folder.path() / "b", secret_mode);
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::fstat(secret.file, &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(::fstat(file, &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
  EXPECT_NE(::fcntl(file, F_GETFD) & FD_CLOEXEC, 0);
}

// Every file that ended in ".partial" was removed, users' own too.
TEST(PartialFileTest, of_a_folder_only_our_own_files_are_removed) {
  const TemporaryFolder folder;
  const fs::path left = partial_path(folder.path() / "step-000000000009.h5");
  std::ofstream(left) << "half";
  std::ofstream(folder.path() / "download.partial") << "mine";
  std::ofstream(folder.path() / ".notes.4711.partial") << "mine";
  fs::create_directory(partial_path(folder.path() / "a folder"));
  fs::create_symlink(folder.path() / "download.partial", partial_path(folder.path() / "a link"));
  EXPECT_EQ(remove_partial_files(folder.path()), std::vector{left});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 4);
  EXPECT_TRUE(remove_partial_files("/no/such/folder").empty());
}

// Temporary names could be foreseen (the process number was all that changed), and a link there was followed: what root
// wrote into a shared folder went into the file of root's that the link named.
TEST(PartialFileTest, links_that_another_user_planted_lead_nowhere) {
  if (::geteuid() != 0) GTEST_SKIP() << "wants root, to be another user";
  const TemporaryFolder folder;
  const TemporaryFolder own;
  fs::permissions(folder.path(), fs::perms::all | fs::perms::sticky_bit);
  fs::permissions(own.path(), fs::perms::all & ~fs::perms::others_write);
  const fs::path target = own.path() / "target";
  std::ofstream(target) << "precious";
  const fs::path file = folder.path() / "summary.json";
  const pid_t writer = ::getpid();
  const pid_t planter = ::fork();
  if (planter == 0) {
    constexpr uid_t nobody = 65534;
    if (::setuid(nobody) != 0) ::_exit(1);
    int planted = ::symlink(target.c_str(), file.c_str());
    for (int process = std::max(1, writer - 50); process < writer + 50; ++process) {
      const std::string start = (folder.path() / fmt::format(".summary.json.{}", process)).string();
      for (const char* end : {"", ".partial", ".lockstep-partial"}) {
        planted |= ::symlink(target.c_str(), (start + end).c_str());
      }
    }
    ::_exit(planted == 0 ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(planter, &status, 0), planter);
  ASSERT_EQ(status, 0) << "the links were not planted";
  write_file_atomically(file, "ours");
  EXPECT_EQ(read_file(target, 100), "precious");
  EXPECT_EQ(read_file(file, 100), "ours");
  EXPECT_FALSE(fs::is_symlink(file)) << "the link itself was replaced";
}

}  // namespace lockstep::partial_file_test
