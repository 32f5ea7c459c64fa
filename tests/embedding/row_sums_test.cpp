#include "embedding/row_sums.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

namespace lockstep::row_sums_test {

using testing::ElementsAre;

constexpr RowRange whole{0, std::int64_t{1} << 40};

// Contribution `i` of a step: rows repeat, and sums in fp32 would depend on the order.
std::int64_t row_of(int i) { return i * i % 7 * 100'000'000; }
std::vector<float> values_of(int i) { return {0.1F * static_cast<float>(i), 1.0F / static_cast<float>(3 + i), -1e-3F}; }
constexpr int contributions = 60;

TEST(RowSumsTest, duplicates_are_added_and_rows_ascend) {
  RowSums sums(2, 8);
  sums.add(9, std::vector<float>{1, 2});
  sums.add(4, std::vector<float>{0.5F, -1});
  sums.add(9, std::vector<float>{0.25F, -4});
  EXPECT_EQ(sums.count(), 2);
  const RowGradients gradients = sums.gradients();
  EXPECT_THAT(gradients.rows, ElementsAre(4, 9));
  EXPECT_THAT(gradients.values, ElementsAre(0.5F, -1, 1.25F, -2));
  sums.clear();
  EXPECT_TRUE(sums.gradients().rows.empty());
  sums.add(9, std::vector<float>{1, 2});
  EXPECT_THAT(sums.gradients().values, ElementsAre(1, 2));
}

TEST(RowSumsTest, messages_add_up_to_the_bits_of_one_sum) {
  constexpr int ranks = 3;
  std::vector<RowSums> own(ranks, RowSums(3, contributions));
  RowSums all(3, contributions);
  for (int i = 0; i < contributions; ++i) {
    own[static_cast<std::size_t>(i % ranks)].add(row_of(i), values_of(i));
    all.add(row_of(contributions - 1 - i), values_of(contributions - 1 - i));
  }
  for (int rank = 1; rank < ranks; ++rank) {
    std::string text;
    own[static_cast<std::size_t>(rank)].append_to(text, whole);
    RowMessage message{text, rank};
    own[0].add_from(message, whole);
    message.end();
  }
  EXPECT_EQ(own[0].gradients().rows, all.gradients().rows);
  EXPECT_EQ(own[0].gradients().values, all.gradients().values);
  EXPECT_EQ(own[0].count(), 4) << "squares have four remainders by seven";
}

TEST(RowSumsTest, a_message_has_the_rows_of_a_range) {
  RowSums sums(1, 2);
  for (const std::int64_t row : {7, 3, 5, 9}) sums.add(row, std::vector<float>{static_cast<float>(row)});
  std::string text;
  sums.append_to(text, {5, 4});
  RowMessage message{text, 1};
  RowSums received(1, 2);
  received.add_from(message, {5, 4});
  message.end();
  EXPECT_THAT(received.gradients().rows, ElementsAre(5, 7));
  EXPECT_THAT(received.gradients().values, ElementsAre(5, 7));
}

TEST(RowSumsTest, a_message_tells_of_a_value_out_of_range) {
  const auto is_in_range = [](float value) {
    RowSums sums(1, 4);
    sums.add(0, std::vector<float>{value});
    std::string text;
    sums.append_to(text, {1, 1});  // without that row
    RowMessage message{text, 1};
    RowSums received(1, 4);
    received.add_from(message, {1, 1});
    EXPECT_EQ(received.count(), 0);
    return received.is_in_range();
  };
  EXPECT_TRUE(is_in_range(0x1p20F - 1));
  EXPECT_FALSE(is_in_range(0x1p20F)) << "four of them reach 2^22";
  EXPECT_FALSE(is_in_range(std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace lockstep::row_sums_test
