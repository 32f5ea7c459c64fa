#include "base/io/regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/mapped_file.hpp"
#include "support/messages.hpp"
#include "support/special_files.hpp"

namespace lockstep::regular_file_test {

namespace fs = std::filesystem;

class RegularFileTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "file";
};

// open() waited for a writer of a pipe, and /dev/zero was read up to the limit.
TEST_F(RegularFileTest, whatever_is_no_file_is_named_without_waiting) {
  for (const SpecialFile kind : all_special_files) {
    const SpecialFileAt special(kind, path_);
    const WithinSeconds limit(10);
    EXPECT_EQ(error_sentence([&] { read_file(path_, 1 << 20); }), special.sentence());
    EXPECT_EQ(error_sentence([&] { read_live_file(path_, 1 << 20); }), special.sentence());
  }
}

TEST_F(RegularFileTest, links_to_files_are_followed) {
  std::ofstream(folder_.path() / "target") << "text";
  fs::create_symlink("target", path_);
  EXPECT_EQ(read_file(path_, 10), "text");
  const RegularFile file(path_);
  EXPECT_EQ(file.bytes(), 4U);
  EXPECT_EQ(::fcntl(file.descriptor(), F_GETFL) & O_NONBLOCK, 0) << "reads wait for the disk again";
  const MappedFile mapped(file);
  EXPECT_EQ(mapped.bytes().size(), 4U);
}

TEST_F(RegularFileTest, files_of_the_system_have_no_length_and_are_read_to_their_end) {
  const std::string stat = read_live_file("/proc/self/stat", 4096);
  EXPECT_EQ(std::stoi(stat), ::getpid());
  EXPECT_THROW(read_live_file("/proc/self/stat", 3), Error);
}

TEST_F(RegularFileTest, a_file_that_becomes_longer_while_it_is_read_is_named) {
  // A file in /proc does just that: it says that it is empty, and gives bytes.
  expect_message(error_sentence([] { read_file("/proc/self/stat", 4096); }, Failure::other), {"/proc/self/stat"});
}

TEST_F(RegularFileTest, a_file_that_becomes_shorter_while_it_is_read_is_named) {
  // A file in /sys does just that: it says that it has a page, and gives a few bytes.
  const char* const path = "/sys/devices/system/cpu/online";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not there";
  expect_message(error_sentence([&] { read_file(path, 1 << 20); }, Failure::other),
                 {"/sys/devices/system/cpu/online", "4096"});
}

TEST_F(RegularFileTest, a_size_above_the_limit_is_told_before_a_byte_is_read) {
  std::ofstream(path_) << "x";
  fs::resize_file(path_, std::uintmax_t{1} << 40);  // takes no room on the disk
  const WithinSeconds limit(10);
  expect_message(error_sentence([&] { read_file(path_, std::size_t{1} << 36); }, Failure::bad_data), {path_.string()});
}

// As root, --predictions /dev/null would have put a file in the place of the device.
TEST_F(RegularFileTest, a_pipe_or_a_device_is_never_replaced_by_a_file) {
  for (const SpecialFile kind : {SpecialFile::pipe, SpecialFile::socket, SpecialFile::device}) {
    const SpecialFileAt special(kind, path_);
    expect_message(error_sentence([&] { write_file_atomically(path_, "text"); }), {path_.string(), special.name()});
    EXPECT_FALSE(fs::is_regular_file(path_));
  }
}

// --predictions /dev/stdout did so, with the output sent to a file: the link became a file, for everybody.
TEST_F(RegularFileTest, a_link_to_an_open_file_is_never_replaced_by_a_file) {
  const fs::path open_file = path_.string() + ".open";
  write_file_atomically(open_file, "");
  const RegularFile file(open_file);
  const fs::path name = fmt::format("/proc/self/fd/{}", file.descriptor());
  fs::create_symlink(name, path_);
  const fs::path link_to_link = path_.string() + ".link";
  fs::create_symlink(path_.filename(), link_to_link);
  for (const fs::path& path : {name, path_, link_to_link}) {
    expect_message(error_sentence([&] { write_file_atomically(path, "text"); }), {path.string()});
    EXPECT_TRUE(fs::is_symlink(path));
  }
}

}  // namespace lockstep::regular_file_test
