#include "dataset/shards/manifest.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::manifest_test {

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
  void expect_damaged(const std::string& from, const std::string& to, std::string_view subject,
                      const std::source_location& where = std::source_location::current()) const {
    expect_message(words_after(from, to), {file().string(), subject}, where);
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

TEST_F(ManifestTest, a_store_of_pictures_is_format_2_and_named) {
  EXPECT_EQ(text().find("store"), std::string::npos);
  write_small_data_set(folder_.path(), {2, 2, 3}, 5, 3, SampleStore::pictures);
  EXPECT_NE(text().find("\"format\": 2"), std::string::npos);
  EXPECT_EQ(read_manifest(folder_.path()).store, SampleStore::pictures);
  expect_damaged(R"("store": "pictures")", R"("store": "images")", "'store'");
}

TEST_F(ManifestTest, a_folder_without_one_holds_no_data_set) {
  const TemporaryFolder empty;
  try {
    read_manifest(empty.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    expect_message(error.what(), {empty.path().string()});
  }
}

// A mistyped --data was answered with "'nowhere/train' holds no data set: manifest.json is missing".
TEST_F(ManifestTest, a_data_set_that_is_no_folder_is_told_apart_from_one_without_manifest) {
  write_file_atomically(folder_.path() / "file", "text");
  for (const auto& [data, fault] : {std::pair("nowhere", "does not exist"), std::pair("file", "is not a folder")}) {
    const std::filesystem::path named = folder_.path() / data;
    expect_error(Failure::usage, {"'" + named.string() + "'", fault}, [&] { read_manifest(named / "train"); });
  }
}

// --data DATA/train was answered with "'DATA/train/train' holds no data set".
TEST_F(ManifestTest, a_split_that_is_named_as_the_data_set_names_the_folder_above) {
  write_small_data_set(folder_.path() / "train", {2, 2, 3}, 5, 3);
  for (const char* const named : {"train/train", "train//train", "test/../train/./test"}) {
    try {
      read_manifest(folder_.path() / named);
      ADD_FAILURE() << named;
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::usage);
      expect_message(error.what(),
                     {"'" + (folder_.path() / "train").string() + "'", "'" + folder_.path().string() + "'"});
    }
  }
}

TEST_F(ManifestTest, a_validation_split_that_was_not_made_is_told_apart_from_no_data) {
  const std::filesystem::path data = folder_.path() / "set";
  write_small_data_set(data / "train", {2, 2, 3}, 5, 3);
  try {
    read_manifest(data / "validation");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    expect_message(error.what(), {"--validation", data.string()});
  }
}

// "[json.exception.parse_error.101] parse error at line ..." was told.
TEST_F(ManifestTest, what_is_no_json_is_told_with_its_place) {
  const std::string whole = text();
  expect_damaged("\"block_bytes\": ", "\"block_bytes\" ", "line 2, column 22");
  expect_damaged(text(), whole.substr(0, 10), "line 2, column 8");
  expect_damaged(text(), "]" + whole, "line 1, column 1");
  expect_damaged(text(), "{\"format\": 1e999}", "number");
  expect_damaged(text(), "", "line 1, column 1");
}

TEST_F(ManifestTest, sample_bits_are_bounded) {
  expect_damaged("\"block_bytes\": ", R"("sample_bits": 17, "block_bytes": )", "'sample_bits'");
}

TEST_F(ManifestTest, a_shard_outside_the_folder_is_refused) {
  expect_damaged("\"shard-1.h5\"", "\"../shard-1.h5\"", "'shards[1].file'");
}

TEST_F(ManifestTest, a_number_of_samples_that_is_impossible_is_refused) {
  expect_damaged("\"samples\": 2", "\"samples\": -2", "'shards[1].samples'");
}

TEST_F(ManifestTest, a_number_beyond_64_bits_is_refused) {
  expect_damaged("\"samples\": 2", "\"samples\": 18446744073709551615", "'shards[1].samples'");
}

TEST_F(ManifestTest, a_missing_field_is_named) { expect_damaged("\"height\"", "\"hight\"", "'shape.height'"); }

TEST_F(ManifestTest, a_file_listed_twice_is_refused) { expect_damaged("\"shard-1.h5\"", "\"shard-0.h5\"", "'shards'"); }

TEST_F(ManifestTest, a_change_that_looks_right_does_not_match_the_root_hash) {
  expect_damaged("\"class 7\"", "\"class 8\"", "'root_hash'");
}

TEST_F(ManifestTest, deep_nesting_is_refused) {
  expect_damaged("\"noise for tests\"", std::string(100'000, '['), "nested");
}

// make_shards wrote a class's name of 300 bytes, and reading then called the manifest damaged.
TEST_F(ManifestTest, what_reading_would_refuse_is_not_written) {
  const std::vector<std::pair<std::function<void(Manifest&)>, std::string>> faults = {
      {[](Manifest& draft) { draft.name = ""; }, "'name'"},
      {[](Manifest& draft) { draft.name = std::string(256, 'x'); }, "'name'"},
      {[](Manifest& draft) { draft.source = std::string(65537, 'x'); }, "'source'"},
      {[](Manifest& draft) { draft.shape.height = 16385; }, "'shape.height'"},
      {[](Manifest& draft) { draft.shape.channels = 17; }, "'shape.channels'"},
      {[](Manifest& draft) { draft.classes.clear(); }, "'classes'"},
      {[](Manifest& draft) { draft.classes.resize(100'001); }, "'classes'"},
      {[](Manifest& draft) { draft.classes[3] = std::string(300, 'x'); }, "'classes'"},
      {[](Manifest& draft) { draft.classes[3] = std::string(100, '\xE9'); },
       "'classes'"},  // three bytes in the place of each
      {[](Manifest& draft) { draft.classes[3] = std::string("c\0t", 3); }, "'classes'"},
      {[](Manifest& draft) { draft.mean[0] = 2; }, "'mean'"},
      {[](Manifest& draft) { draft.deviation[0] = 0; }, "'deviation'"},
      {[](Manifest& draft) { draft.block_bytes = 4095; }, "'block_bytes'"},
      {[](Manifest& draft) { draft.shards.clear(); }, "'shards'"},
      {[](Manifest& draft) { draft.shards[1].file = "../a"; }, "'shards[1].file'"},
      {[](Manifest& draft) { draft.shards[1].samples = 0; }, "'shards[1].samples'"},
      {[](Manifest& draft) { draft.shards[1].bytes = 1 << 30; }, "'shards[1].block_hashes'"},
      {[](Manifest& draft) { draft.shards[1].hash = "x"; }, "'shards[1].hash'"},
      {[](Manifest& draft) { draft.shards.resize(700'000, draft.shards[1]); }, "67108864 bytes"},
  };
  const std::string before = text();
  for (const auto& [spoil, what] : faults) {
    Manifest draft = read_manifest(folder_.path());
    spoil(draft);
    try {
      write_manifest(folder_.path(), draft);
      ADD_FAILURE() << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::usage);
      expect_message(error.what(), {file().string(), what});
    }
    EXPECT_EQ(text(), before) << what;
  }
}

TEST_F(ManifestTest, what_is_at_the_limits_is_written_and_read) {
  Manifest draft = read_manifest(folder_.path());
  draft.name = draft.classes[3] = std::string(255, 'x');
  draft.source = std::string(65536, 'x');
  draft.shape = {16384, 1, 16};
  draft.classes.resize(100'000);
  draft.mean.assign(16, 1);
  draft.deviation.assign(16, smallest_deviation);
  write_manifest(folder_.path(), draft);
  const Manifest read = read_manifest(folder_.path());
  EXPECT_EQ(read.classes, draft.classes);
  EXPECT_EQ(read.root_hash, draft.root_hash);
}

TEST_F(ManifestTest, names_that_are_not_utf8_are_known_beforehand_as_they_will_be_read) {
  Manifest draft = read_manifest(folder_.path());
  draft.classes[3] = "caf\xE9";
  EXPECT_EQ(as_it_will_be_read(folder_.path(), draft).classes[3], "caf\uFFFD");
  write_manifest(folder_.path(), draft);
  EXPECT_EQ(read_manifest(folder_.path()).classes[3], "caf\uFFFD");
}

TEST_F(ManifestTest, names_that_take_too_many_bytes_are_refused_beforehand) {
  Manifest draft = read_manifest(folder_.path());
  draft.classes.assign(50'000, std::string(255, '\1'));  // six bytes each in JSON
  expect_error(Failure::usage, {file().string(), "67108864"}, [&] { as_it_will_be_read(folder_.path(), draft); });
}

TEST(BlockBytesTest, blocks_of_large_data_sets_are_larger) {
  constexpr std::int64_t mebi = 1 << 20;
  EXPECT_EQ(block_bytes_for(0, 0), mebi);
  EXPECT_EQ(block_bytes_for(mebi, 1'000'000 * mebi), mebi);
  EXPECT_EQ(block_bytes_for(mebi + 1, 0), 2 * mebi);
  EXPECT_EQ(block_bytes_for(0, 1'000'001 * mebi), 2 * mebi);
  EXPECT_EQ(block_bytes_for(0, 1'000'000'000 * mebi), 1 << 30) << "the most that a reader takes";
}

// Reading throws bad_data, or what changed has no meaning (white space) and the values are right.
TEST_F(ManifestTest, no_damage_makes_reading_crash_or_believe) {
  const std::string whole = text();
  const std::string root_hash = read_manifest(folder_.path()).root_hash;
  const std::uint64_t rounds = mutation_rounds(3000);
  std::uint64_t refused = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    write_file_atomically(file(), mutated(whole, round));
    try {
      EXPECT_EQ(read_manifest(folder_.path()).root_hash, root_hash) << round;
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, rounds * 3 / 4);
}

}  // namespace lockstep::manifest_test
