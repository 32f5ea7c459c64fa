// Shards of format 2, whose samples have sizes of their own.
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/shard.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::picture_shard_test {

const std::vector<std::string> classes = {"cat", "dog"};

PictureSamples content() {
  PictureSamples samples;
  for (const PictureSize size : {PictureSize{4, 5}, PictureSize{1, 1}, PictureSize{7, 2}}) {
    std::vector<std::uint8_t> pixels;
    for (std::int64_t i = 0; i < size.height * size.width * 3; ++i) pixels.push_back(static_cast<std::uint8_t>(i * 7));
    samples.add(pixels, size, static_cast<std::int32_t>(samples.labels.size()) % 2);
  }
  return samples;
}

class PictureShardTest : public ::testing::Test {
 protected:
  // A manifest that says of these bytes what they are, as whoever wants to do harm would write it.
  Manifest write(const std::vector<std::byte>& bytes, SampleStore store = SampleStore::pictures) const {
    write_file_atomically(folder_.path() / "a.h5", bytes);
    Manifest manifest;
    manifest.store = store;
    manifest.shape = {4, 4, 3};
    manifest.classes = classes;
    manifest.block_bytes = 1 << 12;
    manifest.shards = {{"a.h5", 3, static_cast<std::int64_t>(bytes.size()), xxh3_128_hex(bytes),
                        block_hashes(bytes, manifest.block_bytes)}};
    return manifest;
  }
  ShardReader open(const Manifest& manifest) const { return {folder_.path(), manifest, manifest.shards.front()}; }
  std::string refusal(const PictureSamples& samples, SampleStore store = SampleStore::pictures) const {
    const Manifest manifest = write(picture_shard_bytes(classes, samples), store);
    return message_of(Failure::bad_data, [&] { open(manifest); });
  }

  TemporaryFolder folder_;
};

TEST_F(PictureShardTest, every_sample_comes_back_with_its_size) {
  const PictureSamples made = content();
  const Manifest manifest = write(picture_shard_bytes(classes, made));
  const ShardReader shard = open(manifest);
  ASSERT_EQ(shard.samples(), 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto sample = static_cast<std::int64_t>(i);
    EXPECT_EQ(shard.size(sample), made.sizes[i]);
    EXPECT_EQ(shard.label(sample), made.labels[i]);
    EXPECT_TRUE(std::ranges::equal(
        shard.stored(sample),
        std::span(made.bytes).subspan(static_cast<std::size_t>(made.offsets[i]), shard.stored(sample).size())));
  }
}

TEST_F(PictureShardTest, equal_content_gives_equal_bytes_at_any_time) {
  EXPECT_EQ(xxh3_128_hex(picture_shard_bytes(classes, content())), "e1b1a8169072ed0f99d77b42fe05e8d9");
}

TEST_F(PictureShardTest, offsets_and_sizes_that_do_not_fit_are_named) {
  PictureSamples samples = content();
  std::swap(samples.offsets[1], samples.offsets[2]);
  expect_message(refusal(samples), {"sample 0", "63 bytes"});
  expect_message(refusal(samples, SampleStore::jpeg), {"sample 1"});
  samples = content();
  samples.offsets[0] = 1;
  expect_message(refusal(samples), {"offsets"});
  samples = content();
  samples.offsets[3] += 4096;
  expect_message(refusal(samples), {"/samples"});
  samples = content();
  samples.offsets[3] = -1;
  expect_message(refusal(samples), {"offsets"});
  samples = content();
  samples.sizes[1] = {1, 2};
  expect_message(refusal(samples), {"sample 1", "3 bytes"});
  samples = content();
  samples.sizes[2] = {-7, -2};
  expect_message(refusal(samples), {"sample 2", "-7 x -2"});
  samples = content();
  samples.sizes[2] = {1 << 30, 1 << 30};
  expect_message(refusal(samples, SampleStore::jpeg), {"sample 2", "1073741824 x 1073741824"});
  samples = content();
  samples.sizes[2] = {0, 2};
  expect_message(refusal(samples, SampleStore::jpeg), {"sample 2", "0 x 2"});
  samples = content();
  samples.labels[0] = 2;
  expect_message(refusal(samples), {"sample 0", "label 2", "0 to 1"});
}

TEST_F(PictureShardTest, a_file_of_jpeg_has_any_number_of_bytes) {
  PictureSamples samples = content();
  samples.sizes[1] = {300, 200};
  const Manifest manifest = write(picture_shard_bytes(classes, samples), SampleStore::jpeg);
  EXPECT_EQ(open(manifest).size(1), (PictureSize{300, 200}));
}

TEST_F(PictureShardTest, a_shard_of_the_other_format_is_refused) {
  const std::vector<std::uint8_t> images(std::size_t{3} * 4 * 4 * 3);
  const std::vector<std::int32_t> labels(3);
  Manifest manifest = write(shard_bytes({4, 4, 3}, classes, images, labels));
  expect_error(Failure::bad_data, {"a.h5", "format is not 2"}, [&] { open(manifest); });
  manifest = write(picture_shard_bytes(classes, content()), SampleStore::images);
  expect_error(Failure::bad_data, {"a.h5", "format is not 1"}, [&] { open(manifest); });
}

// Whoever changes bytes can change their hashes, too.
TEST_F(PictureShardTest, no_damage_makes_reading_leave_the_file) {
  const std::vector<std::byte> bytes = picture_shard_bytes(classes, content());
  const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Manifest honest = write(bytes);
  // HDF5's own structures are hashed before HDF5 sees them; what comes after them is ours to check.
  const std::vector<std::int64_t> offsets = content().offsets;
  const std::size_t own = whole.find(std::string(reinterpret_cast<const char*>(offsets.data()), offsets.size() * 8));
  ASSERT_NE(own, std::string::npos);
  for (std::uint64_t round = 0; round < mutation_rounds(3000); ++round) {
    const bool knows_hashes = round % 2 == 0;
    const std::string changed =
        knows_hashes ? whole.substr(0, own) + mutated(whole.substr(own), round) : mutated(whole, round);
    const std::vector<std::byte> damaged(reinterpret_cast<const std::byte*>(changed.data()),
                                         reinterpret_cast<const std::byte*>(changed.data()) + changed.size());
    const Manifest manifest = knows_hashes && !damaged.empty() ? write(damaged) : honest;
    if (!knows_hashes) std::ofstream(folder_.path() / "a.h5", std::ios::binary) << changed;
    try {
      const ShardReader shard = open(manifest);
      std::uint64_t sum = 0;
      for (std::int64_t sample = 0; sample < shard.samples(); ++sample) {
        ASSERT_LT(shard.label(sample), 2);
        ASSERT_GT(shard.size(sample).height, 0);
        for (const std::uint8_t pixel : shard.stored(sample)) sum += pixel;
      }
      ASSERT_LE(sum, std::uint64_t{255} * damaged.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << round << ": " << error.what();
    }
  }
}

}  // namespace lockstep::picture_shard_test
