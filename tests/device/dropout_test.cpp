#include "device/dropout.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "device/flat/flat_passes.hpp"
#include "support/device/ops_fixture.hpp"

namespace lockstep {
namespace {

class DropoutTest : public OpsTest {
 protected:
  Dropout dropout(float ratio, std::int64_t first_sample = 0, std::uint32_t layer = 3, std::int64_t step = 7) {
    const auto values = dropout_key_values(11, step, first_sample);
    return {ratio, layer, vector(Values(values.begin(), values.end()))};
  }
  Values dropped(const Dropout& dropout, const Shape& shape, const Values& x, Layout layout = Layout::features) {
    const Tensor y = make(shape, layout);
    ops_.drop(dropout, tensor(shape, x, layout), y);
    return contents(y);
  }
  static Values ones(const Shape& shape) { return Values(static_cast<std::size_t>(shape.count()), 1.0); }
};

// The same elements on every device: these were worked out from the definition, independently of its loops.
TEST_P(DropoutTest, drops_what_the_draws_say) {
  for (const Shape& shape : {Shape{3, 2, 3, 5}, Shape{2, 1, 2, 16}, Shape{1, 3, 1, 35}}) {
    const auto key = dropout_key_values(11, 7, 40);
    const std::uint64_t of_step = static_cast<std::uint64_t>(key[1]) << 24 | static_cast<std::uint64_t>(key[0]);
    const Values y = dropped(dropout(0.25F, 40), shape, values(shape.count(), 1));
    const Values x = values(shape.count(), 1);
    const std::int64_t quads = (shape[3] + 3) / 4;
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      const std::int64_t channel = i % shape[3];
      const std::int64_t pixel = i / shape[3] % (shape[1] * shape[2]);
      const std::int64_t sample = i / shape[3] / (shape[1] * shape[2]);
      const auto bits = philox(of_step, std::uint64_t{3} << 32 | static_cast<std::uint64_t>(40 + sample),
                               static_cast<std::uint64_t>(pixel * quads + channel / 4));
      const bool is_kept = uniform(bits[static_cast<std::size_t>(channel % 4)]) >= 0.25F;
      const auto at = static_cast<std::size_t>(i);
      EXPECT_NEAR(y[at], is_kept ? x[at] / 0.75 : 0, tolerance()) << i;
    }
  }
}

TEST_P(DropoutTest, keeps_as_many_as_it_should_and_preserves_the_mean) {
  const Shape shape{8, 16, 16, 20};
  for (const float ratio : {0.1F, 0.5F, 0.9F}) {
    double sum = 0;
    for (const double value : dropped(dropout(ratio), shape, ones(shape))) sum += value;
    const auto count = static_cast<double>(shape.count());
    const double deviation = std::sqrt(static_cast<double>(ratio / (1 - ratio)) / count);
    EXPECT_NEAR(sum / count, 1, 5 * deviation + tolerance()) << ratio;
  }
  EXPECT_EQ(dropped(dropout(0), shape, ones(shape)), ones(shape));
}

TEST_P(DropoutTest, a_row_has_the_draws_of_a_map_of_one_pixel) {
  const Shape map{5, 1, 1, 19};
  const Shape row{5, 19};
  const Values of_map = dropped(dropout(0.5F), map, ones(map));
  EXPECT_EQ(dropped(dropout(0.5F), row, ones(row), Layout::plain), of_map);
}

TEST_P(DropoutTest, parts_of_a_batch_have_the_draws_of_the_whole) {
  const Shape whole{6, 2, 2, 9};
  const Shape half{3, 2, 2, 9};
  Values joined = dropped(dropout(0.5F, 12), half, ones(half));
  const Values second = dropped(dropout(0.5F, 15), half, ones(half));
  joined.insert(joined.end(), second.begin(), second.end());
  EXPECT_EQ(joined, dropped(dropout(0.5F, 12), whole, ones(whole)));
}

TEST_P(DropoutTest, layers_steps_and_samples_have_draws_of_their_own) {
  const Shape shape{4, 3, 3, 9};
  const Values first = dropped(dropout(0.5F), shape, ones(shape));
  EXPECT_EQ(dropped(dropout(0.5F), shape, ones(shape)), first);
  EXPECT_NE(dropped(dropout(0.5F, 0, 4), shape, ones(shape)), first);
  EXPECT_NE(dropped(dropout(0.5F, 0, 3, 8), shape, ones(shape)), first);
  EXPECT_NE(dropped(dropout(0.5F, 4), shape, ones(shape)), first);
}

TEST_P(DropoutTest, works_in_place) {
  for (const Layout layout : {Layout::features, Layout::plain}) {
    const Shape shape = layout == Layout::plain ? Shape{8, 11} : Shape{2, 2, 2, 11};
    const Values x = values(shape.count(), 1);
    const Tensor in_place = tensor(shape, x, layout);
    ops_.drop(dropout(0.5F), in_place, in_place);
    EXPECT_EQ(contents(in_place), dropped(dropout(0.5F), shape, x, layout));
  }
}

INSTANTIATE_TEST_SUITE_P(, DropoutTest, every_device_and_precision(), case_name);

}  // namespace
}  // namespace lockstep
