#include "dataset/shards/block_check.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "dataset/shards/hash.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::block_check_test {

constexpr std::int64_t block_bytes = 64;
constexpr std::size_t file_bytes = 64 * 6 + 10;  // seven blocks, the last one shorter

class BlockCheckTest : public testing::Test {
 protected:
  BlockCheckTest() : path_(folder_.path() / "train-00003.h5"), file_(file_bytes) {
    for (std::size_t i = 0; i < file_bytes; ++i) file_[i] = static_cast<std::byte>(7 * i);
    entry_.block_hashes = block_hashes(file_, block_bytes);
    write_file_atomically(path_, std::span<const std::byte>(file_));
    check_ = std::make_unique<BlockCheck>(path_, file_, entry_, block_bytes);
  }

  // What is said of bytes [begin, end) in `epoch`; empty where they are right.
  std::string said(std::size_t begin, std::size_t end, std::int64_t epoch) {
    try {
      check_->require_whole(std::span<const std::byte>(file_).subspan(begin, end - begin), epoch);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data);
      return error.what();
    }
  }

  TemporaryFolder folder_;
  std::filesystem::path path_;
  std::vector<std::byte> file_;
  ShardEntry entry_;
  std::unique_ptr<BlockCheck> check_;
};

TEST_F(BlockCheckTest, blocks_that_are_yet_to_be_hashed_are_to_be_read_whole) {
  const auto to_be_read = [&](std::size_t begin, std::size_t end, std::int64_t epoch) {
    const auto bytes = check_->to_be_read(std::span<const std::byte>(file_).subspan(begin, end - begin), epoch);
    const auto first = static_cast<std::size_t>(bytes.data() - file_.data());
    return std::pair(first, first + bytes.size());
  };
  EXPECT_EQ(to_be_read(70, 80, 0), std::pair(std::size_t{64}, std::size_t{128}));
  EXPECT_EQ(to_be_read(70, 130, 0), std::pair(std::size_t{64}, std::size_t{192}));
  EXPECT_EQ(to_be_read(6 * 64 + 1, file_bytes, 0), std::pair(std::size_t{6 * 64}, file_bytes));
  EXPECT_EQ(said(64, 128, 0), "");
  EXPECT_EQ(to_be_read(70, 80, 0), std::pair(std::size_t{70}, std::size_t{80}));
  EXPECT_EQ(to_be_read(70, 130, 0), std::pair(std::size_t{70}, std::size_t{192}));
  EXPECT_EQ(to_be_read(70, 80, 1), std::pair(std::size_t{64}, std::size_t{128})) << "hashed again in every epoch";
}

TEST_F(BlockCheckTest, whole_blocks_pass) { EXPECT_EQ(said(0, file_bytes, 0), ""); }

TEST_F(BlockCheckTest, every_block_that_is_touched_is_looked_at) {
  file_[3 * 64 + 5] ^= std::byte{1};
  EXPECT_EQ(said(0, 3 * 64, 0), "") << "the changed block is not among them";
  expect_message(said(2 * 64 + 60, 3 * 64 + 1, 0), {path_.string(), "block 3 of 7", "make_shards verify"});
  EXPECT_EQ(said(4 * 64, file_bytes, 0), "");
  file_[file_bytes - 1] ^= std::byte{1};
  expect_message(said(file_bytes - 1, file_bytes, 1), {path_.string(), "block 6 of 7", "epoch 1"});
}

TEST_F(BlockCheckTest, a_block_is_looked_at_once_in_each_epoch) {
  EXPECT_EQ(said(0, 10, 0), "");
  file_[1] ^= std::byte{1};
  EXPECT_EQ(said(0, 10, 0), "");
  EXPECT_EQ(said(64, 70, 1), "");
  EXPECT_NE(said(0, 10, 1), "");
}

TEST_F(BlockCheckTest, of_a_block_that_was_whole_it_is_told_since_when_it_may_not_have_been) {
  for (const int epoch : {0, 1, 2}) EXPECT_EQ(said(0, 10, epoch), "");
  file_[1] ^= std::byte{1};
  expect_message(said(0, 10, 3), {"--resume", path_.string(), "block 0 of 7"});
}

TEST_F(BlockCheckTest, a_thread_still_in_an_earlier_epoch_asks_for_nothing_more) {
  EXPECT_EQ(said(0, 10, 5), "");
  file_[1] ^= std::byte{1};
  EXPECT_EQ(said(0, 10, 4), "");
}

TEST_F(BlockCheckTest, a_removed_shard_is_missed_in_the_next_epoch) {
  EXPECT_EQ(said(0, 10, 0), "");
  std::filesystem::remove(path_);
  EXPECT_EQ(said(0, 10, 0), "");
  expect_message(said(0, 10, 1), {path_.string()});
}

TEST_F(BlockCheckTest, a_shard_of_another_size_is_noticed_before_its_bytes_are) {
  std::filesystem::resize_file(path_, 100);
  expect_message(said(0, 10, 0), {path_.string(), "100"});
}

TEST_F(BlockCheckTest, many_threads_may_ask_at_once) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int epoch = 0; epoch < 50; ++epoch) EXPECT_EQ(said(0, file_bytes, epoch), "");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace lockstep::block_check_test
