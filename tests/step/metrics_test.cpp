#include "step/metrics.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

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
    EXPECT_EQ(diverged_loss_message(loss, 412, 3.2),
              "loss is nan at step 412 (learning rate 3.2). Lower --lr or lengthen the warm-up.");
  }
  EXPECT_EQ(diverged_loss_message(std::numeric_limits<double>::infinity(), 7, 0.1),
            "loss is inf at step 7 (learning rate 0.1). Lower --lr or lengthen the warm-up.");
}

}  // namespace
}  // namespace lockstep
