#include "base/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::random_test {

using Words = std::array<std::uint32_t, 4>;

// The known answers published with Random123 (kat_vectors, "philox4x32 10").
TEST(RandomTest, philox_gives_the_published_answers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ULL, ~0ULL, ~0ULL), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, uniform_values_stay_below_one) {
  EXPECT_EQ(uniform(0), 0.0F);
  EXPECT_LT(uniform(~0U), 1.0F);
}

TEST(RandomTest, normal_values_have_mean_zero_and_variance_one) {
  constexpr int count = 100'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < count; ++i) {
    const auto message = philox(7, 0, static_cast<std::uint64_t>(i));
    const double value = normal(message[0], message[1]);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.02);
}

TEST(RandomTest, normal_values_are_finite_at_both_ends) {
  EXPECT_TRUE(std::isfinite(normal(0, 0)));
  EXPECT_EQ(normal(~0U, 0), 0.0F);
}

}  // namespace lockstep::random_test
