// What a data set costs a rank that opens it: time and memory of its own, of as many shards as the names of the tests
// say. The large ones are for tests/run.sh --long. Ranks open the same files at once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "comm/communicator.hpp"
#include "dataset/dataset.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/shard.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::scale_test {

namespace fs = std::filesystem;

struct Made {
  int shards;
  std::int64_t samples_each;
  std::int64_t bytes_each;  // of a sample
};

// Shards of equal content, zeros but for what is read when they are opened: on disk they take next to nothing.
void make_data_set(const fs::path& folder, const Made& made) {
  Manifest manifest;
  manifest.name = "synthetic";
  manifest.source = "zeros";
  manifest.store = SampleStore::jpeg;
  manifest.shape = {224, 224, 3};
  for (int c = 0; c < 1000; ++c) manifest.classes.push_back("class " + std::to_string(c));
  manifest.mean.assign(3, 0.5F);
  manifest.deviation.assign(3, 0.25F);
  manifest.block_bytes = 1 << 18;
  PictureSamples samples;
  const std::vector<std::uint8_t> zeros(static_cast<std::size_t>(made.bytes_each));
  for (std::int64_t i = 0; i < made.samples_each; ++i) {
    samples.add(zeros, {375, 500}, static_cast<std::int32_t>(i % 1000));
  }
  const std::vector<std::byte> bytes = picture_shard_bytes(manifest.classes, samples);
  ShardEntry entry{"", made.samples_each, static_cast<std::int64_t>(bytes.size()), xxh3_128_hex(bytes),
                   block_hashes(bytes, manifest.block_bytes)};
  std::size_t end = bytes.size();
  while (bytes[end - 1] == std::byte{0}) --end;
  for (int shard = 0; shard < made.shards; ++shard) {
    entry.file = "train-" + std::to_string(shard) + ".h5";
    std::ofstream(folder / entry.file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(end));
    fs::resize_file(folder / entry.file, bytes.size());
    manifest.shards.push_back(entry);
  }
  write_manifest(folder, manifest);
}

// Of this process so far: what others take of the machine does not count.
double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// Memory that is no file's, as /proc counts it.
double own_megabytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == field && status >> kilobytes) return kilobytes / 1024;
  }
  return 0;
}

class ScaleTest : public testing::Test {
 protected:
  // Returns the memory that it takes this rank, in MB.
  double open(const Made& made) {
    const TemporaryFolder own;
    const fs::path folder = world_.broadcast(own.path().string(), 0);
    if (world_.rank() == 0) make_data_set(folder, made);
    world_.barrier();
    const double before = own_megabytes("RssAnon:");
    const double manifest_begun = processor_seconds();
    static_cast<void>(read_manifest(folder));
    const double begun = processor_seconds();
    const Stopwatch watch;
    const Dataset dataset(folder);
    const double seconds = world_.max(watch.seconds());
    const double used = processor_seconds() - begun;
    const double megabytes = world_.max(own_megabytes("RssAnon:") - before);
    EXPECT_EQ(dataset.samples(), made.shards * made.samples_each);
    EXPECT_EQ(dataset.label(dataset.samples() - 1), (made.samples_each - 1) % 1000);
    if (world_.rank() == 0) {
      std::printf(
          "%d shards, %lld samples, %.1f GB, manifest of %.1f MB: opened by %d ranks in %.2f s, %.0f MB each; "
          "%.2f s of the processor, of which the manifest %.2f\n",
          made.shards, static_cast<long long>(dataset.samples()),
          static_cast<double>(dataset.samples()) * static_cast<double>(made.bytes_each) / 1e9,
          static_cast<double>(fs::file_size(folder / manifest_file)) / 1e6, world_.size(), seconds, megabytes, used,
          begun - manifest_begun);
    }
    world_.barrier();
    return megabytes;
  }

  Communicator world_{MPI_COMM_WORLD};
};

constexpr double max_megabytes = 200;

TEST_F(ScaleTest, of_300_shards) { EXPECT_LT(open({300, 20, 100'000}), 40); }

TEST_F(ScaleTest, DISABLED_of_1000_shards_and_the_samples_of_imagenet) {
  EXPECT_LT(open({1000, 1300, 108'000}), max_megabytes);
}

TEST_F(ScaleTest, DISABLED_of_10000_shards) { EXPECT_LT(open({10000, 130, 108'000}), max_megabytes); }

}  // namespace lockstep::scale_test
