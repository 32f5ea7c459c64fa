#include "dataset/manifest.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/random.hpp"
#include "support/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

class ManifestTest : public testing::Test {
 protected:
  ManifestTest() { write_small_data_set(folder_.path(), {2, 2, 3}, 5, 3); }

  std::string text() const { return read_file(file(), 1 << 20); }
  std::filesystem::path file() const { return folder_.path() / manifest_file; }

  // What reading says once `from` stands for `to` in the file.
  std::string words_after(const std::string& from, const std::string& to) const {
    std::string changed = text();
    EXPECT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), from.size(), to);
    write_file_atomically(file(), changed);
    try {
      read_manifest(folder_.path());
      return "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data);
      return error.what();
    }
  }
  std::string damaged(const std::string& what) const {
    return "'" + file().string() + "' is damaged: " + what + ". Re-run make_shards?";
  }

  TemporaryFolder folder_;
};

TEST_F(ManifestTest, reading_gives_back_what_was_written) {
  Manifest manifest = read_manifest(folder_.path());
  EXPECT_EQ(manifest.samples(), 5);
  ASSERT_EQ(manifest.shards.size(), 2U);
  EXPECT_EQ(manifest.shards[1].samples, 2);
  EXPECT_EQ(manifest.shape, (SampleShape{2, 2, 3}));
  EXPECT_EQ(manifest.mean, (std::vector<float>{0.5F, 0.5F, 0.5F}));
  const std::string before = text();
  write_manifest(folder_.path(), manifest);
  EXPECT_EQ(text(), before);
}

TEST_F(ManifestTest, a_folder_without_one_holds_no_data_set) {
  const TemporaryFolder empty;
  try {
    read_manifest(empty.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    EXPECT_EQ(error.what(), "'" + empty.path().string() +
                                "' holds no data set: there is no manifest.json. Make one with make_shards?");
  }
}

// "[json.exception.parse_error.101] parse error at line ..." was told.
TEST_F(ManifestTest, what_is_no_json_is_told_with_its_place) {
  const std::string whole = text();
  EXPECT_EQ(words_after("\"block_bytes\": ", "\"block_bytes\" "), damaged("it is no JSON (line 2, column 22)"));
  EXPECT_EQ(words_after(text(), whole.substr(0, 10)), damaged("it is no JSON (line 2, column 8)"));
  EXPECT_EQ(words_after(text(), "]" + whole), damaged("it is no JSON (line 1, column 1)"));
  EXPECT_EQ(words_after(text(), "{\"format\": 1e999}"), damaged("it holds a number beyond all bounds"));
  EXPECT_EQ(words_after(text(), ""), damaged("it is no JSON (line 1, column 1)"));
}

TEST_F(ManifestTest, a_shard_outside_the_folder_is_refused) {
  EXPECT_EQ(words_after("\"shard-1.h5\"", "\"../shard-1.h5\""), damaged("'shards[1].file' is not a plain file name"));
}

TEST_F(ManifestTest, a_number_of_samples_that_is_impossible_is_refused) {
  EXPECT_EQ(words_after("\"samples\": 2", "\"samples\": -2"),
            damaged("'shards[1].samples' is not from 1 to 1099511627776"));
}

TEST_F(ManifestTest, a_number_beyond_64_bits_is_refused) {
  EXPECT_EQ(words_after("\"samples\": 2", "\"samples\": 18446744073709551615"),
            damaged("'shards[1].samples' is not a whole number"));
}

TEST_F(ManifestTest, a_missing_field_is_named) {
  EXPECT_EQ(words_after("\"height\"", "\"hight\""), damaged("'shape.height' is not there"));
}

TEST_F(ManifestTest, a_file_listed_twice_is_refused) {
  EXPECT_EQ(words_after("\"shard-1.h5\"", "\"shard-0.h5\""), damaged("'shards' is not a list of different files"));
}

TEST_F(ManifestTest, a_change_that_looks_right_does_not_match_the_root_hash) {
  EXPECT_EQ(words_after("\"class 7\"", "\"class 8\""), damaged("it does not match its 'root_hash'"));
}

TEST_F(ManifestTest, deep_nesting_is_refused) {
  EXPECT_EQ(words_after("\"noise for tests\"", std::string(100'000, '[')), damaged("it is nested too deeply"));
}

// Deterministic damage: reading throws bad_data, or what changed has no meaning (white space) and the values are right.
TEST_F(ManifestTest, no_damage_makes_reading_crash_or_believe) {
  const std::string whole = text();
  const std::string root_hash = read_manifest(folder_.path()).root_hash;
  int refused = 0;
  for (std::uint64_t round = 0; round < 3000; ++round) {
    std::string damaged = whole;
    const auto draws = philox(1, 0, round);
    const std::size_t at = draws[0] % damaged.size();
    if (round % 3 == 0) damaged[at] = static_cast<char>(draws[1]);
    if (round % 3 == 1) damaged.erase(at, draws[1] % 40);
    if (round % 3 == 2) damaged.insert(at, damaged.substr(draws[1] % damaged.size(), draws[2] % 40));
    write_file_atomically(file(), damaged);
    try {
      EXPECT_EQ(read_manifest(folder_.path()).root_hash, root_hash) << round;
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 2500);
}

}  // namespace
}  // namespace lockstep
