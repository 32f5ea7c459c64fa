#include "dataset/loading/block_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace lockstep::block_order_test {

struct Split {
  std::int64_t samples;
  std::int64_t global_batch;
  BlockShuffle shuffle;

  BlockOrder order(std::uint64_t seed, std::int64_t epoch) const {
    return {samples, global_batch, shuffle, seed, epoch};
  }
  std::int64_t trained() const { return samples / global_batch * global_batch; }  // in an epoch
  std::int64_t lane_of(std::int64_t position) const { return position % global_batch / (global_batch / shuffle.lanes); }
};

void PrintTo(const Split& split, std::ostream* out) {
  *out << split.samples << " samples, blocks of " << split.shuffle.block << ", windows of " << split.shuffle.window
       << ", " << split.shuffle.lanes << " lanes";
}

std::vector<std::int64_t> samples_of(const BlockOrder& order, std::int64_t samples) {
  std::vector<std::int64_t> result;
  for (std::int64_t position = 0; position < samples; ++position) result.push_back(order.sample_at(position));
  return result;
}

class BlockOrderOf : public testing::TestWithParam<Split> {};

TEST_P(BlockOrderOf, visits_each_sample_once) {
  const Split& split = GetParam();
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> visited = samples_of(split.order(7, epoch), split.samples);
    std::ranges::sort(visited);
    for (std::int64_t sample = 0; sample < split.samples; ++sample) {
      ASSERT_EQ(visited[static_cast<std::size_t>(sample)], sample) << "epoch " << epoch;
    }
  }
}

// What stands in a window of a lane is blocks from beginning to end, the first and the last of them cut.
TEST_P(BlockOrderOf, a_window_of_a_lane_holds_pieces_of_the_file) {
  const Split& split = GetParam();
  const BlockOrder order = split.order(7, 1);
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> windows;
  std::vector<std::int64_t> seen(static_cast<std::size_t>(split.shuffle.lanes), 0);
  for (std::int64_t position = 0; position < split.trained(); ++position) {
    const std::int64_t lane = split.lane_of(position);
    const std::int64_t window = seen[static_cast<std::size_t>(lane)]++ / split.shuffle.window;
    windows[{lane, window}].push_back(order.sample_at(position));
  }
  for (auto& [place, samples] : windows) {
    std::ranges::sort(samples);
    std::int64_t pieces = 1;
    for (std::size_t i = 1; i < samples.size(); ++i) pieces += samples[i] == samples[i - 1] + 1 ? 0 : 1;
    EXPECT_LE(pieces, std::ssize(samples) / split.shuffle.block + 3) << place.first << " " << place.second;
  }
}

// A lane asks for its blocks in their order, from an epoch into the next, and for each sample before it is needed.
TEST_P(BlockOrderOf, blocks_are_asked_for_whole_and_in_time) {
  const Split& split = GetParam();
  const std::int64_t lane_length = split.trained() / split.shuffle.lanes;
  const std::int64_t window = std::min(split.shuffle.window, lane_length);
  std::vector<std::set<std::int64_t>> asked(static_cast<std::size_t>(split.shuffle.lanes));  // for epoch 2
  std::int64_t samples_asked = 0;
  for (const std::int64_t epoch : {1, 2}) {
    const BlockOrder order = split.order(7, epoch);
    std::vector<std::int64_t> seen(static_cast<std::size_t>(split.shuffle.lanes), 0);
    for (std::int64_t position = 0; position < split.trained(); ++position) {
      const auto lane = static_cast<std::size_t>(split.lane_of(position));
      const bool is_for_next = seen[lane]++ + window >= lane_length;
      if (epoch == 2) {
        ASSERT_TRUE(asked[lane].contains(order.sample_at(position))) << position;
      }
      const auto ahead = order.block_ahead(position);
      if (!ahead || is_for_next != (epoch == 1)) continue;
      ASSERT_GE(ahead->first, 0);
      ASSERT_GE(ahead->count, 1);
      ASSERT_LE(ahead->first + ahead->count, split.samples);
      ASSERT_EQ(ahead->first / split.shuffle.block, (ahead->first + ahead->count - 1) / split.shuffle.block);
      for (std::int64_t i = 0; i < ahead->count; ++i) asked[lane].insert(ahead->first + i);
      samples_asked += ahead->count;
    }
  }
  EXPECT_EQ(samples_asked, split.trained());
}

INSTANTIATE_TEST_SUITE_P(Sizes, BlockOrderOf,
                         testing::Values(Split{1, 1, {1, 1, 1}}, Split{100, 10, {10, 20, 5}},
                                         Split{103, 24, {10, 20, 12}}, Split{103, 24, {7, 1000, 3}},
                                         Split{1000, 7, {1, 30, 7}}, Split{1000, 64, {999, 5, 64}},
                                         Split{5000, 96, {50, 37, 8}}, Split{4096, 64, {64, 128, 1}}));

TEST(BlockOrderTest, differs_by_epoch_and_by_seed_and_is_a_function_of_them) {
  const Split split{1000, 50, {20, 60, 10}};
  const auto order = [&](std::uint64_t seed, std::int64_t epoch) { return samples_of(split.order(seed, epoch), 1000); };
  EXPECT_NE(order(7, 0), order(7, 1));
  EXPECT_NE(order(7, 0), order(8, 0));
  EXPECT_EQ(order(7, 5), order(7, 5));
}

// Resuming is_paused on it.
TEST(BlockOrderTest, is_what_it_always_was) {
  const std::vector<std::int64_t> order = samples_of(Split{103, 24, {10, 20, 12}}.order(1, 2), 12);
  EXPECT_EQ(order, (std::vector<std::int64_t>{41, 40, 46, 44, 31, 36, 82, 83, 88, 63, 69, 68}));
}

// Which samples an epoch drops with its last, incomplete batch is drawn too.
TEST(BlockOrderTest, no_sample_is_left_out_more_often_than_others) {
  const Split split{103, 24, {10, 20, 12}};
  std::vector<int> dropped(103, 0);
  constexpr int epochs = 8000;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const BlockOrder order = split.order(3, epoch);
    for (std::int64_t position = 96; position < 103; ++position) {
      ++dropped[static_cast<std::size_t>(order.sample_at(position))];
    }
  }
  // 7 of 103 each time.
  for (std::size_t sample = 0; sample < dropped.size(); ++sample) {
    EXPECT_NEAR(dropped[sample], epochs * 7 / 103, 120) << sample;
  }
}

// How far that is from an order in which any sample may stand anywhere: lib/dataset/README.md states it for ImageNet.
TEST(BlockOrderTest, samples_of_a_block_meet_in_a_batch_as_often_as_is_documented) {
  constexpr std::int64_t batch = 256;
  const Split split{60'000, batch, {38, 152, 64}};
  const BlockOrder order = split.order(1, 1);
  std::int64_t pairs = 0;
  std::int64_t pairs_of_a_block = 0;
  for (std::int64_t first = 0; first < split.trained(); first += batch) {
    std::map<std::int64_t, std::int64_t> of_block;
    for (std::int64_t i = 0; i < batch; ++i) ++of_block[order.sample_at(first + i) / 38];
    pairs += batch * (batch - 1) / 2;
    for (const auto& [block, count] : of_block) pairs_of_a_block += count * (count - 1) / 2;
  }
  // Pairs of one lane, times those of a window in one block.
  const double expected = (4 - 1) / 255.0 * (38 - 1) / (152 - 1.0);
  EXPECT_NEAR(1 / expected, 347, 1);
  EXPECT_NEAR(static_cast<double>(pairs_of_a_block) / static_cast<double>(pairs), expected, expected / 10);
}

TEST(BlockOrderTest, samples_of_a_block_are_used_within_two_windows) {
  const Split split{60'000, 256, {38, 152, 64}};
  const BlockOrder order = split.order(1, 1);
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> steps;  // of each block and lane, first and last
  for (std::int64_t position = 0; position < split.trained(); ++position) {
    const std::int64_t step = position / 256;
    const std::int64_t key = order.sample_at(position) / 38 * 64 + split.lane_of(position);
    auto& [first, last] = steps.try_emplace(key, step, step).first->second;
    last = std::max(last, step);
  }
  std::int64_t longest = 0;
  for (const auto& [key, reach] : steps) longest = std::max(longest, reach.second - reach.first);
  EXPECT_LE(longest, 2 * 152 / 4);
  EXPECT_GT(longest, 152 / 4 - 8);
}

TEST(BlockShuffleTest, sizes_follow_from_the_bytes_of_samples) {
  Manifest data;
  data.shards.resize(2);
  for (ShardEntry& entry : data.shards) {
    entry.samples = 640'000;
    entry.bytes = entry.samples * 110'000;
  }
  const BlockShuffle imagenet = block_shuffle(data, 256, 1 << 30);
  EXPECT_EQ(imagenet.block, 38);
  EXPECT_EQ(imagenet.window, 152);
  EXPECT_EQ(imagenet.lanes, 64);
  EXPECT_EQ(block_shuffle(data, 100, 1 << 30).lanes, 50);
  EXPECT_EQ(block_shuffle(data, 67, 1 << 30).lanes, 1);
  EXPECT_EQ(block_shuffle(data, 7, 1 << 30).lanes, 7);
  data.shards = {ShardEntry{}};
  data.shards[0].samples = 10;
  data.shards[0].bytes = 30'000;
  EXPECT_EQ(block_shuffle(data, 5, 1 << 20).block, 10);
  EXPECT_EQ(block_shuffle(data, 5, 1).window, 1);
}

}  // namespace lockstep::block_order_test
