#include "dataset/pictures/tar_file.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/io/file.hpp"
#include "dataset/pictures/tar_archive.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::tar_file_test {

namespace fs = std::filesystem;

class TarFileTest : public ::testing::Test {
 protected:
  fs::path root() const { return folder_.path() / "content"; }
  fs::path archive() const { return folder_.path() / "a.tar"; }

  void write(const fs::path& name, const std::string& text) const {
    fs::create_directories((root() / name).parent_path());
    write_file_atomically(root() / name, text);
  }
  void write_content() const {
    write("a.jpg", "first");
    write("folder/b c.jpg", std::string(1000, 'b'));
    write("folder/empty", "");
    write(std::string(90, 'd') + "/" + std::string(90, 'e'), "behind a prefix");
    fs::create_symlink("a.jpg", root() / "link.jpg");
  }

  static std::map<std::string, std::string> contents(const TarFile& tar, const ByteRange& part) {
    std::map<std::string, std::string> found;
    for (const TarEntry& entry : tar.entries(part)) {
      std::string text(static_cast<std::size_t>(entry.content.bytes), '\0');
      tar.read(entry.content.begin, text);
      found[entry.name] = text;
    }
    return found;
  }
  std::map<std::string, std::string> contents() const {
    const TarFile tar(archive());
    return contents(tar, tar.whole());
  }

  std::map<std::string, std::string> expected_ = {
      {"a.jpg", "first"},
      {"folder/b c.jpg", std::string(1000, 'b')},
      {"folder/empty", ""},
      {std::string(90, 'd') + "/" + std::string(90, 'e'), "behind a prefix"}};
  TemporaryFolder folder_;
};

TEST_F(TarFileTest, files_of_every_format_are_found) {
  write_content();
  for (const char* const format : {"gnu", "ustar", "pax"}) {
    test::make_tar(archive(), root(), format);
    EXPECT_EQ(contents(), expected_) << format;
  }
}

TEST_F(TarFileTest, names_too_long_for_a_header_are_whole) {
  const std::string name = std::string(200, 'x') + "/" + std::string(200, 'y') + "ä\n.jpg";
  write(name, "text");
  for (const char* const format : {"gnu", "pax"}) {
    test::make_tar(archive(), root(), format);
    EXPECT_EQ(contents(), (std::map<std::string, std::string>{{name, "text"}})) << format;
  }
}

TEST_F(TarFileTest, an_archive_within_an_archive_is_read_where_it_lies) {
  write_content();
  fs::create_directory(folder_.path() / "outer");
  test::make_tar(folder_.path() / "outer" / "inner.tar", root());
  write_file_atomically(folder_.path() / "outer" / "z", "behind");
  test::make_tar(archive(), folder_.path() / "outer");
  const TarFile tar(archive());
  const std::vector<TarEntry> entries = tar.entries(tar.whole());
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(contents(tar, entries.front().content), expected_);
}

TEST_F(TarFileTest, one_that_was_cut_is_named_with_the_byte) {
  write_content();
  test::make_tar(archive(), root());
  fs::resize_file(archive(), 514);
  expect_error(Failure::bad_data, {archive().string()}, [&] { contents(); });
  // Between two files.
  test::make_tar(archive(), root());
  fs::resize_file(archive(), 1024);
  expect_error(Failure::bad_data, {archive().string(), "byte 1024"}, [&] { contents(); });
}

TEST_F(TarFileTest, what_is_no_archive_is_refused) {
  write_file_atomically(archive(), std::string(4096, 'x'));
  expect_error(Failure::bad_data, {archive().string(), "byte 0"}, [&] { contents(); });
}

TEST_F(TarFileTest, no_damage_makes_reading_leave_the_archive) {
  write_content();
  std::uint64_t refused = 0;
  const std::uint64_t rounds = mutation_rounds(2000);
  for (const char* const format : {"gnu", "ustar", "pax"}) {
    test::make_tar(archive(), root(), format);
    const std::string whole = read_file(archive(), 1 << 20);
    for (std::uint64_t round = 0; round < rounds / 3; ++round) {
      const std::string damaged = mutated(whole, round);
      write_file_atomically(archive(), damaged);
      try {
        const TarFile tar(archive());
        for (const TarEntry& entry : tar.entries(tar.whole())) {
          ASSERT_GE(entry.content.begin, 512);
          ASSERT_LE(entry.content.begin + entry.content.bytes, static_cast<std::int64_t>(damaged.size()));
        }
      } catch (const Error& error) {
        ASSERT_EQ(error.failure(), Failure::bad_data) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, rounds / 10);
}

}  // namespace lockstep::tar_file_test
