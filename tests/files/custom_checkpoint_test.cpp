#include "files/checkpoint/custom_checkpoint.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "base/error.hpp"
#include "dataset/shards/hash.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"

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
