#include "dataset/loading/sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lockstep::sampler_test {

std::vector<std::int64_t> order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch) {
  const SampleOrder sample_order(samples, seed, epoch);
  std::vector<std::int64_t> result;
  for (std::int64_t position = 0; position < samples; ++position) result.push_back(sample_order.sample_at(position));
  return result;
}

class SampleOrderOf : public testing::TestWithParam<std::int64_t> {};

TEST_P(SampleOrderOf, visits_each_sample_once) {
  const std::int64_t samples = GetParam();
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> visits(static_cast<std::size_t>(samples), 0);
    for (const std::int64_t sample : order(samples, 7, epoch)) {
      ASSERT_GE(sample, 0);
      ASSERT_LT(sample, samples);
      ++visits[static_cast<std::size_t>(sample)];
    }
    EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(samples), 1)) << "epoch " << epoch;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SampleOrderOf,
                         testing::Values(1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 999, 4096, 4097, 50000, 60000));

TEST(SampleOrder, differs_by_epoch_and_by_seed) {
  EXPECT_NE(order(1000, 7, 0), order(1000, 7, 1));
  EXPECT_NE(order(1000, 7, 0), order(1000, 8, 0));
  EXPECT_EQ(order(1000, 7, 5), order(1000, 7, 5));
}

// Correlation of position and sample over an epoch: its standard deviation is 1 / sqrt(samples) = 0.0045.
TEST(SampleOrder, does_not_follow_the_order_of_the_file) {
  constexpr std::int64_t samples = 50000;
  const std::vector<std::int64_t> samples_in_order = order(samples, 1, 0);
  const double middle = (samples - 1) / 2.0;
  double product = 0;
  double square = 0;
  for (std::int64_t position = 0; position < samples; ++position) {
    const double x = static_cast<double>(position) - middle;
    product += x * (static_cast<double>(samples_in_order[static_cast<std::size_t>(position)]) - middle);
    square += x * x;
  }
  EXPECT_LT(std::abs(product / square), 0.02);
}

// Over many epochs each sample comes first equally often: chi-square with 9 degrees of freedom stays below 27.9 in 999
// of 1000 cases.
TEST(SampleOrder, puts_every_sample_first_equally_often) {
  constexpr std::int64_t epochs = 20000;
  std::vector<double> first(10, 0);
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    ++first[static_cast<std::size_t>(SampleOrder(10, 3, epoch).sample_at(0))];
  }
  double chi_square = 0;
  for (const double count : first) chi_square += (count - epochs / 10.0) * (count - epochs / 10.0) / (epochs / 10.0);
  EXPECT_LT(chi_square, 27.9);
}

}  // namespace lockstep::sampler_test
