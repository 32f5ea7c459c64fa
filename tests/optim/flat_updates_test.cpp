#include "optim/flat_updates.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace lockstep {
namespace {

class FlatUpdatesTest : public testing::Test {
 protected:
  Tensor make(const std::vector<float>& values) {
    const Tensor tensor = device_->make_lasting(static_cast<std::int64_t>(values.size()), DType::f32);
    device_->write(values, tensor);
    return tensor;
  }
  std::vector<float> read(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
    device_->read(tensor, values);
    return values;
  }

  StepRecord record(float learning_rate, float gradient_scale = 1) {
    const StepRecord record(*device_, 1);
    device_->write(std::vector<float>{learning_rate}, record.at(step_learning_rate));
    device_->write(std::vector<float>{gradient_scale}, record.at(step_gradient_scale));
    return record;
  }

  std::unique_ptr<Device> device_ = open_device({.name = "cpu", .threads = 2});
};

TEST_F(FlatUpdatesTest, updates_as_many_values_as_there_are_gradients) {
  const SgdArrays arrays{make({1, 1, 1}), make({0, 0, 0}), make({2, 2, 2, 2, 2})};
  make_flat_updates(*device_, {{0, 2, 0.5F}, {2, 1, 0.0F}})->sgd({0.9F, Momentum::classic}, arrays, record(0.25F));
  EXPECT_EQ(read(arrays.values), (std::vector<float>{1.5F, 1.5F, 1.75F, 2.0F, 2.0F}));
  EXPECT_EQ(read(arrays.velocity), (std::vector<float>{2.0F, 2.0F, 1.0F}));
}

// A power of two: the scaled gradient comes back exactly.
TEST_F(FlatUpdatesTest, unscales_gradients_before_anything_else) {
  const std::vector<float> gradients{0.3F, -0.1F, 0.7F};
  std::vector<float> scaled = gradients;
  for (float& value : scaled) value *= 1024;
  const SgdArrays plain{make(gradients), make({0.1F, 0.2F, 0.3F}), make({1.1F, 2.2F, 3.3F})};
  const SgdArrays other{make(scaled), make({0.1F, 0.2F, 0.3F}), make({1.1F, 2.2F, 3.3F})};
  const auto updates = make_flat_updates(*device_, {{0, 3, 0.01F}});
  updates->sgd({0.9F, Momentum::nesterov}, plain, record(0.1F));
  updates->sgd({0.9F, Momentum::nesterov}, other, record(0.1F, 1.0F / 1024));
  EXPECT_EQ(read(other.values), read(plain.values));
  EXPECT_EQ(read(other.velocity), read(plain.velocity));
}

TEST_F(FlatUpdatesTest, moves_running_statistics_towards_the_batch) {
  const Tensor running = make({0.0F, 1.0F});
  make_flat_updates(*device_, {})->average(make({4.0F, 3.0F}), 0.25F, running, record(0));
  EXPECT_EQ(read(running), (std::vector<float>{1.0F, 1.5F}));
}

TEST_F(FlatUpdatesTest, counts_infinities_and_nans_and_nothing_else) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(1000, std::numeric_limits<float>::max());
  values[1] = -std::numeric_limits<float>::max();
  values[2] = std::numeric_limits<float>::denorm_min();
  const auto updates = make_flat_updates(*device_, {});
  const Tensor count = make({7.0F});
  updates->count_outside(make(values), infinity, count, Accumulate::overwrite);
  EXPECT_EQ(read(count)[0], 0.0F);
  values[0] = infinity;
  values[500] = -infinity;
  values[999] = nan;
  updates->count_outside(make(values), infinity, count, Accumulate::overwrite);
  EXPECT_EQ(read(count)[0], 3.0F);
  updates->count_outside(make({nan, 0.0F, -nan}), infinity, count, Accumulate::add);
  EXPECT_EQ(read(count)[0], 5.0F);
  updates->count_outside(make({1.0F, -2.0F, 1.9F, nan}), 2.0F, count, Accumulate::overwrite);
  EXPECT_EQ(read(count)[0], 2.0F);
}

}  // namespace
}  // namespace lockstep
