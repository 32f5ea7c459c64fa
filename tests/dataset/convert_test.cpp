// On any number of ranks: what conversion writes is the same, whole, and continues where it was interrupted.
#include "dataset/shards/convert.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/shards/split_spec.hpp"
#include "dataset/shards/verify.hpp"
#include "support/messages.hpp"
#include "support/samples/small_cifar.hpp"
#include "support/special_files.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::convert_test {

namespace fs = std::filesystem;

class ConvertTest : public testing::Test {
 protected:
  ConvertTest() {
    // All ranks work in rank 0's folder.
    folder_ = world_.broadcast(own_.path().string(), 0);
    if (world_.rank() == 0) write_small_cifar(folder_ / "cifar");
    world_.barrier();
    source_ = open_cifar10(folder_ / "cifar");
    options_.output = folder_ / "out";
    options_.samples_per_shard = 13;
    options_.validation = 30;
  }
  ~ConvertTest() override { world_.barrier(); }

  void run() const { convert(world_, *source_, options_); }

  // Rank 0 changes a file between two runs.
  template <typename Change>
  void on_rank_0(Change change) const {
    world_.barrier();
    if (world_.rank() == 0) change();
    world_.barrier();
  }

  // Name and content of every file, as one hash.
  std::string hash_of_output() const {
    std::vector<std::string> lines;
    for (const auto& entry : fs::recursive_directory_iterator(options_.output)) {
      if (!entry.is_regular_file() || entry.path().extension() != ".h5") continue;
      const std::string bytes = read_file(entry.path(), 1 << 20);
      lines.push_back(fs::relative(entry.path(), options_.output).string() +
                      xxh3_64_hex(std::as_bytes(std::span(bytes))));
    }
    std::sort(lines.begin(), lines.end());
    const std::string all = fmt::format("{}", fmt::join(lines, "\n"));
    return xxh3_64_hex(std::as_bytes(std::span(all)));
  }

  Communicator world_{MPI_COMM_WORLD};
  TemporaryFolder own_;
  fs::path folder_;
  std::unique_ptr<SampleSource> source_;
  ConvertOptions options_;
};

TEST_F(ConvertTest, the_shards_are_the_same_on_any_number_of_ranks) {
  run();
  // One value for every number of ranks that this test runs with, and for every HDF5.
  EXPECT_EQ(hash_of_output(), "4a3343df77593ebc");
}

TEST_F(ConvertTest, every_sample_is_in_one_split_with_its_pixels) {
  run();
  std::vector<std::string> found;  // pixels and label
  for (const char* split : {"train", "validation"}) {
    const Manifest manifest = read_manifest(options_.output / split);
    for (const ShardEntry& entry : manifest.shards) {
      const ShardReader shard(options_.output / split, manifest, entry);
      for (std::int64_t i = 0; i < shard.samples(); ++i) {
        found.emplace_back(shard.stored(i).begin(), shard.stored(i).end()).push_back(static_cast<char>(shard.label(i)));
      }
    }
  }
  std::vector<std::string> expected;
  SourceSample image;
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int32_t label = source_->read(SourceSplit::train, i, image).value();
    expected.emplace_back(image.picture.pixels.begin(), image.picture.pixels.end()).push_back(static_cast<char>(label));
  }
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(found, expected);
  EXPECT_EQ(read_manifest(options_.output / "validation").samples(), 30);
}

TEST_F(ConvertTest, a_validation_split_takes_all_copies_but_not_all_samples) {
  std::map<std::int64_t, std::int64_t> copies;
  for (std::int64_t sample = 1; sample < 50; ++sample) copies[sample] = 0;
  std::set<std::int64_t> counts;
  for (options_.seed = 0; options_.seed < 20; ++options_.seed) {
    const std::vector<SplitSpec> plans = plan_splits(*source_, options_, copies);
    const std::vector<std::int64_t>& validation = plans[1].samples;
    EXPECT_EQ(plans[0].samples.size() + validation.size(), 100U);
    EXPECT_GE(validation.size(), 30U);
    counts.insert(std::ranges::count_if(validation, [](std::int64_t sample) { return sample < 50; }));
  }
  EXPECT_EQ(counts, (std::set<std::int64_t>{0, 50}));
  for (std::int64_t sample = 50; sample < 100; ++sample) copies[sample] = 0;
  expect_error(Failure::usage, {"30 ", "100 ", "--validation"}, [&] { plan_splits(*source_, options_, copies); });
}

TEST_F(ConvertTest, mean_and_deviation_are_the_training_splits) {
  options_.validation = 0;
  run();
  std::vector<double> sums(3);
  SourceSample image;
  for (std::int64_t i = 0; i < 100; ++i) {
    source_->read(SourceSplit::train, i, image);
    for (std::size_t at = 0; at < image.picture.pixels.size(); ++at) sums[at % 3] += image.picture.pixels[at];
  }
  const Manifest manifest = read_manifest(options_.output / "test");
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(manifest.mean[c], static_cast<float>(sums[c] / (100 * 1024) / 255));
  // Uniform noise on 0 ... 255.
  EXPECT_NEAR(manifest.deviation[0], 0.2898, 0.002);
}

// CIFAR, but for one picture.
class OneOfItsOwnSize final : public SampleSource {
 public:
  explicit OneOfItsOwnSize(const SampleSource& others) : others_(others) {}
  const SourceDescription& description() const override { return others_.description(); }
  std::int64_t samples(SourceSplit split) const override { return others_.samples(split); }
  std::optional<std::int32_t> read(SourceSplit split, std::int64_t index, SourceSample& sample) const override {
    const std::optional<std::int32_t> label = others_.read(split, index, sample);
    if (split == SourceSplit::train && index == 42) {
      sample.picture.size = {40, 30};
      sample.picture.pixels.resize(std::size_t{40} * 30 * 3);
    }
    return label;
  }

 private:
  const SampleSource& others_;
};

TEST_F(ConvertTest, a_picture_of_another_size_is_named) {
  const OneOfItsOwnSize source(*source_);
  const Communicator alone(MPI_COMM_SELF);
  options_.output = own_.path() / "mixed";
  try {
    convert(alone, source, options_);
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::bad_data);
    expect_message(error.what(), {source.description().source, "42"});
  }
  EXPECT_FALSE(fs::exists(options_.output / "train" / manifest_file));
}

TEST_F(ConvertTest, what_is_made_again_has_no_manifest_until_it_is_whole) {
  const Communicator alone(MPI_COMM_SELF);
  options_.output = own_.path() / "again";
  convert(alone, *source_, options_);
  fs::remove(options_.output / "train" / "train-00000.h5");
  EXPECT_THROW(convert(alone, OneOfItsOwnSize(*source_), options_), Error);
  for (const char* split : {"train", "validation", "test"}) {
    EXPECT_FALSE(fs::exists(options_.output / split / manifest_file)) << split;
  }
}

// CIFAR, and as many samples as it says.
class OfSize final : public SampleSource {
 public:
  OfSize(const SampleSource& others, std::int64_t train, std::int64_t test)
      : others_(others), train_(train), test_(test) {}
  const SourceDescription& description() const override { return others_.description(); }
  std::int64_t samples(SourceSplit split) const override { return split == SourceSplit::train ? train_ : test_; }
  std::optional<std::int32_t> read(SourceSplit split, std::int64_t, SourceSample& sample) const override {
    return others_.read(split, 0, sample);
  }

 private:
  const SampleSource& others_;
  std::int64_t train_;
  std::int64_t test_;
};

// CIFAR, but each sample is said to have a tebibyte.
class Large final : public SampleSource {
 public:
  explicit Large(const SampleSource& others) : others_(others) {}
  const SourceDescription& description() const override { return others_.description(); }
  std::int64_t samples(SourceSplit split) const override { return others_.samples(split); }
  std::int64_t expected_bytes(SourceSplit, std::int64_t) const override { return std::int64_t{1} << 40; }
  std::optional<std::int32_t> read(SourceSplit split, std::int64_t index, SourceSample& sample) const override {
    return others_.read(split, index, sample);
  }

 private:
  const SampleSource& others_;
};

// The manifest had a hash of each MiB, and was too long for its reader once all shards were written.
TEST_F(ConvertTest, a_large_data_set_has_larger_blocks) {
  convert(world_, Large(*source_), options_);
  EXPECT_EQ(read_manifest(options_.output / "train").block_bytes, 1 << 27);
  verify(world_, options_.output);
}

TEST_F(ConvertTest, more_shards_than_names_are_refused_for_each_split) {
  options_.samples_per_shard = 1;
  for (const auto& [train, test] : {std::pair(100'030, 1), std::pair(31, 100'000)}) {
    const OfSize source(*source_, train, test);
    try {
      convert(world_, source, options_);
      ADD_FAILURE() << "it was taken";
    } catch (const Error& error) {
      expect_message(error.what(), {"--samples-per-shard", "100000"});
    }
  }
  EXPECT_FALSE(fs::exists(options_.output));
}

TEST_F(ConvertTest, an_interrupted_run_is_continued) {
  run();
  const std::string whole = hash_of_output();
  const auto written = fs::last_write_time(options_.output / "train" / "train-00001.h5");
  on_rank_0([&] {
    fs::remove(options_.output / "train" / manifest_file);
    fs::remove(options_.output / "train" / "train-00000.h5");
    fs::resize_file(options_.output / "train" / "train-00002.h5", 100);
    write_file_atomically(options_.output / "train" / ".train-00003.h5.00000000004711ab.lockstep-partial", "half");
    write_file_atomically(options_.output / "train" / "download.partial", "mine");
  });
  run();
  EXPECT_EQ(hash_of_output(), whole);
  EXPECT_FALSE(fs::exists(options_.output / "train" / ".train-00003.h5.00000000004711ab.lockstep-partial"));
  EXPECT_TRUE(fs::exists(options_.output / "train" / "download.partial")) << "not ours";
  EXPECT_EQ(fs::last_write_time(options_.output / "train" / "train-00001.h5"), written);
}

TEST_F(ConvertTest, verifying_finds_the_damaged_block_and_running_again_mends_it) {
  run();
  verify(world_, options_.output);
  const fs::path shard = options_.output / "train" / "train-00002.h5";
  on_rank_0([&] {
    std::string bytes = read_file(shard, 1 << 20);
    bytes[5000] = static_cast<char>(bytes[5000] ^ 1);
    write_file_atomically(shard, bytes);
  });
  const Manifest manifest = read_manifest(options_.output / "train");
  const std::vector<std::string> found = find_damage(world_, options_.output / "train", manifest);
  ASSERT_EQ(found.size(), 1U);
  expect_message(found.front(), {shard.string(), "block 0 of 1"});
  world_.barrier();
  run();
  verify(world_, options_.output);
}

// A whole data set was called damaged, and whoever believed it replaced it.
TEST_F(ConvertTest, a_shard_that_cannot_be_opened_is_not_called_damaged) {
  run();
  const fs::path shard = options_.output / "train" / "train-00000.h5";
  const Communicator alone(MPI_COMM_SELF);
  const int first_free = ::dup(0);
  ::close(first_free);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit limit{static_cast<rlim_t>(first_free) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::string told = error_sentence([&] { verify(alone, options_.output / "train"); }, Failure::usage);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  expect_message(told, {"train-00000.h5", "Too many open files", "ulimit -n"});
}

// The old samples were kept, and the data set was called complete.
TEST_F(ConvertTest, other_samples_or_class_names_make_another_data_set) {
  if (world_.size() > 1) GTEST_SKIP() << "the rank that finds it ends the others";
  run();
  const std::string names = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
  for (const auto& [file, text] :
       {std::pair("test_batch.bin", small_cifar_records(7)), std::pair("data_batch_1.bin", small_cifar_records(8)),
        std::pair("batches.meta.txt", names)}) {
    write_small_cifar(folder_ / "cifar");
    write_file_atomically(folder_ / "cifar" / file, text);
    source_ = open_cifar10(folder_ / "cifar");
    expect_error(Failure::usage, {options_.output.string(), "--source", "--output"}, [&] { run(); });
  }
}

TEST_F(ConvertTest, a_conversion_of_an_earlier_version_recorded_no_hash) {
  run();
  on_rank_0([&] {
    const fs::path record = options_.output / "conversion.json";
    std::string text = read_file(record, 1 << 16);
    text.erase(text.find(" \"files\""), text.find(" \"samples_per_shard\"") - text.find(" \"files\""));
    write_file_atomically(record, text);
  });
  run();
}

// Its bytes are those of the manifest, so every hash is right: a training refused it, and pointed to verify.
TEST_F(ConvertTest, verifying_finds_a_shard_that_a_reader_refuses) {
  run();
  Manifest manifest = read_manifest(options_.output / "train");
  manifest.classes.resize(1);
  const std::vector<std::string> found = find_damage(world_, options_.output / "train", manifest);
  ASSERT_EQ(found.size(), manifest.shards.size());
  expect_message(found.front(), {"train-00000.h5", "0 to 0"});
}

}  // namespace lockstep::convert_test
