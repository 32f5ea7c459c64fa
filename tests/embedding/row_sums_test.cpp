#include "embedding/row_sums.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <vector>

namespace lockstep::row_sums_test {

using testing::ElementsAre;

Communicator world() { return Communicator(MPI_COMM_WORLD); }

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

TEST(RowSumsTest, ranks_get_the_bits_of_one_rank) {
  RowSums own(3, contributions);
  RowSums all(3, contributions);
  for (int i = 0; i < contributions; ++i) {
    if (i % world().size() == world().rank()) own.add(row_of(i), values_of(i));
    all.add(row_of(contributions - 1 - i), values_of(contributions - 1 - i));
  }
  own.sum_over_ranks(world());
  EXPECT_EQ(own.gradients().rows, all.gradients().rows);
  EXPECT_EQ(own.gradients().values, all.gradients().values);
  EXPECT_EQ(own.count(), 4) << "squares have four remainders by seven";
}

TEST(RowSumsTest, a_rank_without_rows_gets_those_of_the_others) {
  const int last = world().size() - 1;
  RowSums sums(1, 2);
  if (world().rank() == last) sums.add(3, std::vector<float>{5});
  sums.sum_over_ranks(world());
  EXPECT_THAT(sums.gradients().rows, ElementsAre(3));
  EXPECT_THAT(sums.gradients().values, ElementsAre(5));
}

TEST(RowSumsTest, all_ranks_learn_of_a_value_out_of_range) {
  const int last = world().size() - 1;
  const auto is_in_range = [&](float value) {
    RowSums sums(1, 4);
    sums.add(0, std::vector<float>{world().rank() == last ? value : 1});
    sums.sum_over_ranks(world());
    return sums.is_in_range();
  };
  EXPECT_TRUE(is_in_range(0x1p20F - 1));
  EXPECT_FALSE(is_in_range(0x1p20F)) << "four of them reach 2^22";
  EXPECT_FALSE(is_in_range(std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace lockstep::row_sums_test
