#include "dataset/dataset.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/mapped_file.hpp"
#include "runtime/failure/crash_handler.hpp"
#include "support/messages.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::dataset_test {

constexpr SampleShape shape{8, 6, 3};

// A data set of 25 samples in shards of 10, 10 and 5.
class DatasetTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    std::filesystem::remove_all(directory_);
    write_small_data_set(directory_, shape, 25, 10);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string refusal() const {
    try {
      Dataset dataset(directory_);
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data);
      return error.what();
    }
    return "accepted";
  }

  // By name, not by process: a death test runs the test again in a process of its own.
  const std::filesystem::path directory_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("dataset_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(DatasetTest, numbers_samples_through_all_shards) {
  const Dataset dataset(directory_);
  ASSERT_EQ(dataset.samples(), 25);
  for (std::int64_t sample = 0; sample < 25; ++sample) {
    const auto image = dataset.picture(sample).pixels;
    ASSERT_EQ(image.size(), 8U * 6U * 3U);
    for (std::size_t i = 0; i < image.size(); ++i) {
      ASSERT_EQ(image[i], small_pixel(sample, static_cast<std::int64_t>(i))) << "sample " << sample << " pixel " << i;
    }
    EXPECT_EQ(dataset.label(sample), small_label(sample));
  }
}

// The pixels of the last sample of shard 1, as they lie in its file.
void change_a_pixel(const std::filesystem::path& shard, const Dataset& dataset) {
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes(std::filesystem::file_size(shard), 0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto image = dataset.picture(19).pixels;
  const std::size_t place = bytes.find(std::string(image.begin(), image.end()));
  ASSERT_NE(place, std::string::npos);
  file.seekp(static_cast<std::streamoff>(place));
  file.put(static_cast<char>(image[0] ^ 1));
}

TEST_F(DatasetTest, a_shard_that_changes_while_it_is_used_is_noticed_in_the_next_epoch) {
  const Dataset dataset(directory_);
  for (std::int64_t sample = 0; sample < 25; ++sample) EXPECT_NO_THROW(dataset.begin_reading(sample, 0));
  change_a_pixel(directory_ / "shard-1.h5", dataset);
  EXPECT_NO_THROW(dataset.begin_reading(12, 0));
  EXPECT_NO_THROW(dataset.begin_reading(5, 1)) << "another shard";
  try {
    dataset.begin_reading(12, 1);
    FAIL() << "the block changed";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::bad_data);
    expect_message(error.what(), {"--resume"});
  }
}

TEST_F(DatasetTest, names_a_shard_of_another_size_than_the_manifest_says) {
  const auto shard = directory_ / "shard-1.h5";
  const auto bytes = std::filesystem::file_size(shard);
  std::filesystem::resize_file(shard, bytes + 1);

  expect_message(refusal(), {shard.string()});
}

TEST_F(DatasetTest, names_a_shard_that_is_missing) {
  std::filesystem::remove(directory_ / "shard-2.h5");
  expect_message(refusal(), {(directory_ / "shard-2.h5").string()});
}

using DatasetDeathTest = DatasetTest;

TEST_F(DatasetDeathTest, shard_that_shrinks_while_open_ends_the_program_with_65_and_its_name) {
  const Dataset dataset(directory_);
  std::filesystem::resize_file(directory_ / "shard-1.h5", 0);

  EXPECT_EXIT(
      {
        int sum = dataset.picture(3).pixels[0];  // the other shards still stand
        sum += dataset.picture(12).pixels[0];
        _exit(sum == 0 ? 1 : 2);
      },
      testing::ExitedWithCode(65), "\\[rank 0, .*\\] .*/shard-1.h5'.*\n");
}

TEST_F(DatasetDeathTest, fault_elsewhere_goes_to_the_handler_before) {
  EXPECT_EXIT(
      {
        // Dataset's handler may be installed already, so this one would be the newer: it goes in before the first
        // Dataset.
        struct sigaction former {};
        former.sa_handler = [](int) { _exit(42); };
        sigaction(SIGBUS, &former, nullptr);
        const Dataset dataset(directory_);
        raise(SIGBUS);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(DatasetDeathTest, fault_elsewhere_without_a_handler_ends_as_ever) {
  EXPECT_EXIT(
      {
        signal(SIGBUS, SIG_DFL);
        const Dataset dataset(directory_);
        raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

// A handler that lets the signal end the program must not meet ours again.
TEST_F(DatasetDeathTest, signal_that_was_sent_is_told_and_ends_the_program) {
  EXPECT_EXIT(
      {
        install_crash_handlers();
        const Dataset dataset(directory_);
        raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "crashed: SIGBUS, ");
}

TEST_F(DatasetDeathTest, another_file_that_shrinks_is_told_and_ends_the_program) {
  const auto other = directory_ / "other";
  write_file_atomically(other, "some bytes");
  EXPECT_EXIT(
      {
        install_crash_handlers();
        const Dataset dataset(directory_);
        const MappedFile mapped{RegularFile(other)};
        std::filesystem::resize_file(other, 0);
        _exit(static_cast<int>(mapped.bytes()[0]));
      },
      testing::KilledBySignal(SIGBUS), "crashed: SIGBUS, ");
}

// Whether the pages of `bytes` of a file in memory are there.
bool is_in_memory(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const std::size_t length = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size() - begin;
  std::vector<unsigned char> pages((length + page - 1) / page);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the page of an address
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), length, pages.data()), 0);
  return std::ranges::all_of(pages, [](unsigned char present) { return (present & 1) != 0; });
}

// Over the border of two shards.
TEST(DatasetReadAhead, samples_that_are_asked_for_come_into_memory) {
  const TemporaryFolder folder;
  constexpr SampleShape large{400, 400, 3};
  write_small_data_set(folder.path(), large, 12, 6);
  const Dataset dataset(folder.path());
  for (const ShardEntry& entry : dataset.manifest().shards) {
    const RegularFile file(folder.path() / entry.file);
    ASSERT_EQ(fsync(file.descriptor()), 0);
    ASSERT_EQ(posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }
  const auto bytes = [&](std::int64_t sample) { return std::as_bytes(dataset.picture(sample).pixels); };
  const auto middle = [&](std::int64_t sample) { return bytes(sample).subspan(8192, bytes(sample).size() - 16384); };
  if (is_in_memory(middle(5))) GTEST_SKIP() << "this file system keeps files in memory";
  dataset.read_ahead(4, 3, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!(is_in_memory(bytes(4)) && is_in_memory(bytes(5)) && is_in_memory(bytes(6)))) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(is_in_memory(middle(10)));
}

}  // namespace lockstep::dataset_test
