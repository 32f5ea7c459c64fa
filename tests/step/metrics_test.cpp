#include "step/metrics.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "support/messages.hpp"

namespace lockstep::metrics_test {

TEST(MetricsTest, sums_weigh_each_sample_alike) {
  Metrics metrics{2.0, 1, 4};
  metrics.add({6.0, 3, 4});
  EXPECT_DOUBLE_EQ(metrics.loss(), 1.0);
  EXPECT_DOUBLE_EQ(metrics.accuracy(), 0.5);
}

TEST(MetricsTest, no_samples_have_no_loss) {
  EXPECT_EQ(Metrics().loss(), 0);
  EXPECT_EQ(Metrics().accuracy(), 0);
}

TEST(MetricsTest, a_loss_that_is_no_number_ends_the_training) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double loss : {nan, -nan}) {
    expect_message(diverged_loss_message(loss, 412, 3.2), {"--lr", "412"});
  }
  expect_message(diverged_loss_message(std::numeric_limits<double>::infinity(), 7, 0.1), {"--lr"});
}

}  // namespace lockstep::metrics_test
