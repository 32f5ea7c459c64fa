#include "dataset/shards/shard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "dataset/shards/hash.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"
#include "support/virtual_dataset.hpp"

namespace lockstep::shard_test {

const SampleShape shape{4, 5, 3};
const std::vector<std::string> classes = {"cat", "dog", "Ärmel"};
constexpr std::int64_t samples = 7;

struct Content {
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
};

Content content() {
  Content made;
  for (int i = 0; i < samples * 4 * 5 * 3; ++i) made.images.push_back(static_cast<std::uint8_t>(i * 7));
  for (int i = 0; i < samples; ++i) made.labels.push_back(i % 3);
  return made;
}

std::vector<std::byte> bytes_of(const Content& made) { return shard_bytes(shape, classes, made.images, made.labels); }

// What a manifest says of a shard of these bytes.
Manifest manifest_of(const std::string& file, std::span<const std::byte> bytes) {
  Manifest manifest;
  manifest.shape = shape;
  manifest.classes = classes;
  manifest.block_bytes = 1 << 12;
  manifest.shards = {{file, samples, static_cast<std::int64_t>(bytes.size()), xxh3_128_hex(bytes),
                      block_hashes(bytes, manifest.block_bytes)}};
  return manifest;
}

std::string describe(const std::filesystem::path& directory, const Manifest& manifest,
                     Failure failure = Failure::bad_data) {
  try {
    const ShardReader reader(directory, manifest, manifest.shards.front());
    return "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), failure);
    return error.what();
  }
}

TEST(ShardTest, a_shard_gives_back_every_sample_that_was_written) {
  const TemporaryFolder folder;
  const Content made = content();
  write_file_atomically(folder.path() / "a.h5", bytes_of(made));
  const Manifest manifest = manifest_of("a.h5", bytes_of(made));
  const ShardReader reader(folder.path(), manifest, manifest.shards.front());
  ASSERT_EQ(reader.samples(), samples);
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto image = reader.stored(i);
    EXPECT_TRUE(std::equal(image.begin(), image.end(), made.images.begin() + i * 60)) << i;
    EXPECT_EQ(reader.label(i), made.labels[static_cast<std::size_t>(i)]);
  }
}

TEST(ShardTest, equal_content_gives_equal_bytes_at_any_time) {
  // The hash is the same on HDF5 1.10 and 1.14: shards may be made on one machine and continued on another.
  EXPECT_EQ(xxh3_128_hex(bytes_of(content())), "ec542d14b60aa01b0dd6e37d03aa31fd");
}

TEST(ShardTest, all_of_hdf5s_own_structures_lie_in_the_first_block) {
  const std::vector<std::byte> bytes = bytes_of(content());
  const std::vector<std::uint8_t> images = content().images;
  const auto* const first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto* const found = std::search(first, first + bytes.size(), images.begin(), images.end());
  EXPECT_GT(found - first, 0);
  EXPECT_LE(found - first, 1 << 12);
  // Behind the pictures come the labels, and then the file ends.
  const std::int64_t behind = bytes.size() - (found - first) - static_cast<std::int64_t>(images.size());
  EXPECT_GE(behind, 4 * samples);
  EXPECT_LT(behind, 4 * samples + 64);
}

TEST(ShardTest, hdf5s_structures_with_many_classes_are_as_long_as_stated) {
  for (const std::size_t length : {1U, 9U, 255U}) {
    const std::vector<std::string> many(20'000, std::string(length, 'x'));
    const std::vector<std::byte> bytes = shard_bytes(shape, many, content().images, content().labels);
    // Behind them are the samples and the labels, which take less than this.
    EXPECT_LE(std::ssize(bytes), shard_structure_bytes(many)) << length;
  }
  EXPECT_LE(shard_structure_bytes(std::vector<std::string>(100, std::string(255, 'x'))), Manifest().block_bytes);
}

TEST(ShardTest, a_missing_shard_is_named) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "none.h5").string();
  expect_message(describe(folder.path(), manifest_of("none.h5", bytes_of(content()))),
                 {"'" + path + "'", "No such file or directory", "manifest.json"});
}

// The advice was to run make_shards again, whatever the reason.
TEST(ShardTest, a_shard_that_cannot_be_opened_comes_with_the_reasons_advice) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "loop.h5";
  std::filesystem::create_symlink("loop.h5", path);
  const std::string message = describe(folder.path(), manifest_of("loop.h5", bytes_of(content())), Failure::usage);
  expect_message(message, {"'" + path.string() + "'", "Too many levels of symbolic links", "manifest.json"});
  EXPECT_EQ(message.find("make_shards"), std::string::npos) << message;
}

TEST(ShardTest, a_shard_that_was_cut_is_damaged) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "cut.h5";
  const std::vector<std::byte> whole = bytes_of(content());
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    write_file_atomically(path, std::span(whole).first(size));
    // Cut before the manifest was written, or after.
    for (const Manifest& manifest :
         {manifest_of("cut.h5", std::span(whole).first(size)), manifest_of("cut.h5", whole)}) {
      EXPECT_NE(describe(folder.path(), manifest).find("'" + path.string() + "'"), std::string::npos) << size;
    }
  }
}

TEST(ShardTest, a_label_beyond_the_classes_is_named) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  Content made = content();
  made.labels[5] = 255;
  write_file_atomically(path, bytes_of(made));
  expect_message(describe(folder.path(), manifest_of("a.h5", bytes_of(made))),
                 {"'" + path.string() + "'", "sample 5", "label 255", "0 to 2", "make_shards verify"});
}

TEST(ShardTest, another_number_of_samples_than_the_manifest_says_is_refused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  write_file_atomically(path, bytes_of(content()));
  Manifest manifest = manifest_of("a.h5", bytes_of(content()));
  manifest.shards.front().samples = 8;
  expect_message(describe(folder.path(), manifest), {"'" + path.string() + "'", "/labels", "8 samples"});
}

// Any file that a shard named was opened: reading a pipe took forever.
TEST(ShardTest, no_other_file_is_opened) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "a.h5";
  const std::string other = (folder.path() / "other.h5").string();
  write_file_atomically(other, bytes_of(content()));
  const auto expect_refused = [&](const auto& replace, const char* why) {
    write_file_atomically(path, bytes_of(content()));
    {
      const Hid<H5Fclose> file(check_h5(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open for spoiling"));
      check_h5(H5Ldelete(file, "images", H5P_DEFAULT), "delete");
      replace(file);
    }
    const std::string bytes = read_file(path, 1 << 20);
    expect_message(describe(folder.path(), manifest_of("a.h5", std::as_bytes(std::span(bytes)))),
                   {"'" + path.string() + "'", "/images", why});
  };
  expect_refused(
      [&](hid_t file) {
        check_h5(H5Lcreate_external(other.c_str(), "images", file, "images", H5P_DEFAULT, H5P_DEFAULT), "link");
      },
      "link");
  expect_refused(
      [](hid_t file) { check_h5(H5Lcreate_soft("labels", file, "images", H5P_DEFAULT, H5P_DEFAULT), "link"); }, "link");
  expect_refused([](hid_t file) { create_virtual_dataset(file, "images", H5T_STD_U8LE); }, "contiguously");
}

// HDF5 1.10 reads beyond its buffers in some damaged structures, so none may reach it.
TEST(ShardTest, every_changed_byte_of_the_first_block_is_found_before_hdf5_looks) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  const std::vector<std::byte> whole = bytes_of(content());
  const Manifest manifest = manifest_of("a.h5", whole);
  const auto first_block = std::min(whole.size(), static_cast<std::size_t>(manifest.block_bytes));
  for (std::size_t at = 0; at < first_block; ++at) {
    if (whole[at] == std::byte{0} && at % 61 != 0) continue;
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::vector<std::byte> damaged = whole;
      damaged[at] ^= static_cast<std::byte>(flip);
      {
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(damaged.data()), static_cast<std::streamsize>(damaged.size()));
      }
      const std::string message = describe(folder.path(), manifest);
      EXPECT_NE(message.find("'" + path.string() + "'"), std::string::npos) << message;
      EXPECT_NE(message.find("block 0 of "), std::string::npos) << message;
    }
  }
}

TEST(ShardTest, no_damage_makes_reading_leave_the_file) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  const std::vector<std::byte> bytes = bytes_of(content());
  const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Manifest manifest = manifest_of("a.h5", bytes);
  for (std::uint64_t round = 0; round < mutation_rounds(2000); ++round) {
    const std::string damaged = mutated(whole, round);
    std::ofstream(path, std::ios::binary) << damaged;
    try {
      const ShardReader shard(folder.path(), manifest, manifest.shards.front());
      std::uint64_t sum = 0;
      for (std::int64_t sample = 0; sample < shard.samples(); ++sample) {
        ASSERT_LT(shard.label(sample), 3);
        for (const std::uint8_t pixel : shard.stored(sample)) sum += pixel;
      }
      ASSERT_LE(sum, std::uint64_t{255} * damaged.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << round << ": " << error.what();
    }
  }
}

}  // namespace lockstep::shard_test
