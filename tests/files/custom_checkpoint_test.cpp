#include "files/checkpoint/custom_checkpoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/streamed_array.hpp"
#include "dataset/shards/hash.hpp"
#include "files/checkpoint/stream_file.hpp"
#include "files/tensor_file.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::custom_checkpoint_test {

CustomCheckpoint some_checkpoint() {
  return {30,
          {{"x", {0.1F, -0.0F, std::numeric_limits<float>::denorm_min()}}, {"velocity", {std::nanf("")}}},
          {{"steps_completed", 30}, {"rate", 0.1}, {"name", "\u00e9"}},
          1.5,
          {{"increment-by", "3"}}};
}

std::string image_of(const CustomCheckpoint& checkpoint) {
  const std::vector<std::byte> bytes = checkpoint_image(checkpoint);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

CustomCheckpoint parse(std::string image) { return parse_custom_checkpoint("step.h5", image); }

TEST(CustomCheckpointTest, is_read_as_it_was_written) {
  const CustomCheckpoint read = parse(image_of(some_checkpoint()));
  EXPECT_EQ(read.steps_completed, 30);
  EXPECT_EQ(read.seconds, 1.5);
  EXPECT_EQ(read.metadata, some_checkpoint().metadata);
  EXPECT_EQ(read.options, some_checkpoint().options);
  EXPECT_EQ(read.arrays.at("x"), some_checkpoint().arrays.at("x"));
  EXPECT_TRUE(std::signbit(read.arrays.at("x")[1]));
  EXPECT_TRUE(std::isnan(read.arrays.at("velocity").at(0)));
  EXPECT_TRUE(parse(image_of({1, {}, nlohmann::json::object()})).arrays.empty());
}

// Blocks of an array pass through memory one by one. The file has the content of one that is made in memory.
TEST(CustomCheckpointTest, a_streamed_one_is_read_as_it_was_written) {
  CustomCheckpoint checkpoint = some_checkpoint();
  std::vector<float> large(2'500'000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i) * 0.5F;
  checkpoint.arrays["large"] = large;
  std::vector<StreamedArray> arrays;
  for (const auto& [name, values] : checkpoint.arrays) arrays.insert(arrays.begin(), streamed_array(name, values));
  std::size_t largest_block = 0;
  arrays.push_back({"rows", 400'001, 3, [&](std::int64_t first, std::span<float> values) {
                      largest_block = std::max(largest_block, values.size_bytes());
                      for (std::size_t i = 0; i < values.size(); ++i)
                        values[i] = static_cast<float>(3 * first) + static_cast<float>(i);
                    }});
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "step.h5";
  stream_file(
      path, [] {}, [&](UnpublishedFile* file) { stream_custom_checkpoint(file, checkpoint, arrays); });
  EXPECT_EQ(largest_block, 12U * ((1 << 20) / 3)) << "whole rows within 4 MiB";
  CustomCheckpoint read = parse(read_file(path, tensor_file_limits::file_bytes));
  EXPECT_EQ(read.metadata, checkpoint.metadata);
  EXPECT_EQ(read.options, checkpoint.options);
  EXPECT_EQ(read.arrays.at("large"), large);
  EXPECT_EQ(read.arrays.at("rows").size(), 1'200'003U);
  for (std::size_t i = 0; i < 1'200'003; ++i) ASSERT_EQ(read.arrays.at("rows")[i], static_cast<float>(i));
  read.arrays.erase("rows");
  EXPECT_EQ(image_of(read), image_of(checkpoint));
}

TEST(CustomCheckpointTest, a_rank_that_cannot_write_takes_part_to_the_end) {
  int blocks = 0;
  const std::vector<StreamedArray> arrays{
      {"a", 2, 1 << 20, [&](std::int64_t /*first*/, std::span<float> /*values*/) { ++blocks; }},
      {"a/b", 3, 1 << 20, [&](std::int64_t /*first*/, std::span<float> /*values*/) { ++blocks; }}};
  const TemporaryFolder folder;
  const auto write = [&](const std::filesystem::path& path) {
    stream_file(
        path, [] {}, [&](UnpublishedFile* file) { stream_custom_checkpoint(file, some_checkpoint(), arrays); });
  };
  expect_error(Failure::usage, {"'a/b'"}, [&] { write(folder.path() / "step.h5"); });
  EXPECT_EQ(blocks, 5);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THROW(write(folder.path() / "absent" / "step.h5"), Error);
  EXPECT_EQ(blocks, 10);
  stream_custom_checkpoint(nullptr, some_checkpoint(), arrays);
  EXPECT_EQ(blocks, 15);
}

TEST(CustomCheckpointTest, what_would_not_be_read_back_is_not_written) {
  CustomCheckpoint checkpoint = some_checkpoint();
  const auto expect_refused = [&](Subjects subjects) {
    expect_error(Failure::usage, subjects, [&] { checkpoint_image(checkpoint); });
  };
  nlohmann::json deep;
  for (int level = 0; level < 40; ++level) deep = {{"deeper", deep}};
  for (const nlohmann::json& metadata :
       {nlohmann::json{{"rate", std::nan("")}}, nlohmann::json{{"name", "\xff"}}, nlohmann::json::array(), deep}) {
    checkpoint.metadata = metadata;
    EXPECT_NE(message_of(Failure::usage, [&] { checkpoint_image(checkpoint); }).find("metadata"), std::string::npos);
  }
  expect_refused({"metadata", "31"});
  checkpoint = some_checkpoint();
  checkpoint.arrays = {{"empty", {}}};
  expect_refused({"'empty'"});
  checkpoint.arrays = {{"a/b", {1}}};
  expect_refused({"'a/b'"});
  checkpoint.arrays = {{"", {1}}};
  expect_refused({"''"});
  for (const std::string& name : {std::string("."), std::string("a\0b", 3), std::string(5000, 'a')}) {
    checkpoint.arrays = {{name, {1}}};
    EXPECT_NE(message_of(Failure::usage, [&] { checkpoint_image(checkpoint); }), "no error");
  }
}

// Whoever damages a file on purpose also writes its hash line anew.
TEST(CustomCheckpointTest, damage_is_noticed) {
  const std::string whole = image_of(some_checkpoint());
  const std::string content = whole.substr(0, whole.size() - hash_line({}).size());
  int noticed = 0;
  for (std::uint64_t round = 0; round < mutation_rounds(1000); ++round) {
    const std::string damaged = mutated(content, round);
    try {
      EXPECT_EQ(image_of(parse(damaged + hash_line(std::as_bytes(std::span(damaged))))), whole) << round;
    } catch (const Error& error) {
      ++noticed;
      EXPECT_EQ(error.failure(), Failure::bad_data) << round << ": " << error.what();
    }
  }
  EXPECT_GT(noticed, 0);
}

}  // namespace lockstep::custom_checkpoint_test
