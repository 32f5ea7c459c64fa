#include "base/io/file.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "support/messages.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::file_test {

namespace fs = std::filesystem;

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error("no error");
}

std::ptrdiff_t files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(FileTest, what_was_written_is_read_back_and_no_other_file_is_left) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a.txt";
  write_file_atomically(file, "old");
  write_file_atomically(file, "new and longer");
  EXPECT_EQ(read_file(file, 100), "new and longer");
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(FileTest, a_missing_file_is_wrong_use) {
  const Error error = error_of([] { read_file("/no/such/file", 10); });
  EXPECT_EQ(error.failure(), Failure::usage);
  expect_message(error.what(), {"'/no/such/file'"});
}

TEST(FileTest, a_file_above_the_limit_is_bad_data) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a.txt";
  write_file_atomically(file, "12345");
  EXPECT_EQ(read_file(file, 5), "12345");
  const Error error = error_of([&] { read_file(file, 4); });
  EXPECT_EQ(error.failure(), Failure::bad_data);
  expect_message(error.what(), {file.string()});
}

TEST(FileTest, a_folder_that_is_missing_cannot_be_written_to) {
  const Error error = error_of([] { write_file_atomically("/no/such/file", "text"); });
  EXPECT_EQ(error.failure(), Failure::usage);
  expect_message(error.what(), {"'/no/such/file'"});
}

TEST(FileTest, a_full_disk_leaves_the_old_file_and_nothing_else) {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "mount is not permitted here";
  const fs::path file = folder.path() / "a.txt";
  write_file_atomically(file, "old");
  const Error error = error_of([&] { write_file_atomically(file, std::string(1 << 20, 'x')); });
  EXPECT_EQ(error.failure(), Failure::other);
  expect_message(error.what(), {file.string()});
  EXPECT_EQ(read_file(file, 100), "old");
  EXPECT_EQ(files_in(folder.path()), 1);
  ::umount(folder.path().c_str());
}

// So ends a job of several ranks: nothing is unwound, and why is still to be written there.
TEST(FileTest, what_has_no_room_is_gone_where_nobody_catches) {
  const TemporaryFolder folder;
  static fs::path target;
  target = folder.path() / "file";
  const auto write_without_room = []() noexcept {
    const NoRoomBeyond limit(1000);
    write_file_atomically(target, std::string(4000, 'x'));
  };
  EXPECT_EXIT(
      {
        std::set_terminate([] { std::_Exit(files_in(target.parent_path()) == 0 ? 0 : 1); });
        write_without_room();
      },
      testing::ExitedWithCode(0), "");
}

TEST(FileTest, whoever_objects_before_the_rename_keeps_the_older_file_and_leaves_no_other) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a.txt";
  write_file_atomically(file, "old");
  const std::string text = "new";
  const auto object = [&] {
    EXPECT_EQ(files_in(folder.path()), 2);
    throw Error(Failure::out_of_step, "mine");
  };
  const Error error = error_of([&] { write_file_atomically(file, std::as_bytes(std::span(text)), object); });
  EXPECT_EQ(error.failure(), Failure::out_of_step);
  EXPECT_EQ(read_file(file, 100), "old");
  EXPECT_EQ(files_in(folder.path()), 1);
}

}  // namespace lockstep::file_test
