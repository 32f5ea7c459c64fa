// On any number of ranks: how many bits of 16-bit samples count is judged by all files together.
#include "dataset/pictures/sample_bits.hpp"

#include <gtest/gtest.h>

#include "picture/made_png.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::test::sample_bits_test {

class SampleBitsTest : public ::testing::Test {
 protected:
  JudgedBits judged(std::optional<std::int64_t> stated = {}) const {
    const auto file = [this](std::int64_t index) { return files_.at(static_cast<std::size_t>(index)); };
    return sample_bits_of(
        world_,
        {std::ssize(files_), [](std::int64_t index) { return "set/" + std::to_string(index) + ".png"; },
         [&](std::int64_t index, std::size_t max_bytes) { return file(index).substr(0, max_bytes); }},
        stated);
  }
  SampleBits bits(std::optional<std::int64_t> stated = {}) const { return judged(stated).bits; }
  std::string refusal(std::optional<std::int64_t> stated = {}) const {
    return message_of(Failure::usage, [&] { bits(stated); });
  }

  Communicator world_{MPI_COMM_WORLD};
  std::string plain_ = make_png({1, 1, 8, 0}, std::string("\0\x07", 2));
  std::vector<std::string> files_{plain_, "no picture", "", wide_gray_png({0, 4000}), wide_gray_png({4095, 7}), plain_};
};

// Such a set became a data set of nearly black pictures.
TEST_F(SampleBitsTest, a_set_without_a_value_above_12_bits_is_refused_on_every_rank) {
  expect_message(refusal(), {"--sample-bits", "set/4.png"});
  EXPECT_EQ(bits(12), (SampleBits{12, BitPosition::lowest}));
  EXPECT_EQ(judged(12).noted, 12);
  EXPECT_EQ(bits(14).unstated, 14);
  EXPECT_EQ(bits(16), (SampleBits{16, BitPosition::highest}));
}

TEST_F(SampleBitsTest, one_larger_value_anywhere_decides_for_all) {
  for (std::size_t place = 0; place < files_.size(); ++place) {
    const std::string before = std::exchange(files_[place], wide_gray_png({4096}));
    EXPECT_EQ(bits().unstated, 16);
    expect_message(refusal(12), {"--sample-bits", std::to_string(place)});
    files_[place] = before;
  }
}

TEST_F(SampleBitsTest, where_files_have_the_bits_that_they_state_is_seen_in_all_of_them) {
  const std::string twelve = png_chunk("sBIT", "\x0c");
  files_ = {plain_, wide_gray_png({16, 4080}, twelve), wide_gray_png({160}, twelve)};
  EXPECT_EQ(bits(), (SampleBits{16, BitPosition::lowest}));
  EXPECT_EQ(judged().noted, 12);
  files_.push_back(wide_gray_png({0x1001}, twelve));
  EXPECT_EQ(bits(), (SampleBits{16, BitPosition::highest}));
  EXPECT_EQ(judged().noted, std::nullopt);
  EXPECT_EQ(bits(12), (SampleBits{12, BitPosition::lowest}));
}

// A rank stopped at its first file of 16 bits, so the pixels depended on the number of ranks and on the order of files.
TEST_F(SampleBitsTest, files_with_and_without_stated_bits_are_judged_alike_in_any_order) {
  const std::string twelve = png_chunk("sBIT", "\x0c");
  const std::string unstated = wide_gray_png({60000});
  const std::string low = wide_gray_png({16, 4080}, twelve);
  const std::string high = wide_gray_png({0xfff0}, twelve);
  for (const bool is_unstated_first : {true, false}) {
    files_.assign(4, is_unstated_first ? unstated : low);
    files_.insert(files_.end(), 4, is_unstated_first ? low : unstated);
    EXPECT_EQ(bits(), (SampleBits{16, BitPosition::lowest}));
    EXPECT_EQ(judged().noted, std::nullopt);
  }
  files_ = {unstated, unstated, unstated, low, high};
  EXPECT_EQ(bits(), (SampleBits{16, BitPosition::highest}));
  files_ = {high, high, high, wide_gray_png({4000})};
  expect_message(refusal(), {"--sample-bits", "set/3.png"});
}

TEST_F(SampleBitsTest, files_of_8_bits_and_black_ones_raise_no_question) {
  files_ = {plain_, wide_gray_png({0})};
  EXPECT_EQ(bits().unstated, 16);
  files_.clear();
  EXPECT_EQ(bits().unstated, 16);
}

}  // namespace lockstep::test::sample_bits_test
