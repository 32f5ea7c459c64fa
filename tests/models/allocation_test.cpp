// After the first step a training step asks the system for no memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "models/allocation_counter.hpp"
#include "models/counter_values.hpp"
#include "models/test_net.hpp"
#include "nn/initialize.hpp"

namespace lockstep::test {
namespace {

// Reports into nothing: recording would allocate.
class SilentSink final : public GradientSink {
 public:
  Accumulate accumulate() const override { return Accumulate::overwrite; }
  void ready(const Parameter&) override {}
};

std::int64_t allocations_of_a_later_step(const ModelOptions& model) {
  TestNet net(model);
  initialize(net.store, 1);
  const Shape shape{4, model.sample.height, model.sample.width, model.sample.channels};
  const Tensor images = make_images(*net.device, shape, counter_uniform(0, shape.count()));
  const Tensor labels = make_labels(*net.device, std::vector<float>{0, 1, 2, 3});
  SilentSink sink;
  net.pass(images, labels, sink);
  const std::int64_t before = allocations();
  net.pass(images, labels, sink);
  return allocations() - before;
}

TEST(AllocationTest, the_counter_counts) {
  const std::int64_t before = allocations();
  // Through a volatile pointer, or the compiler removes the pair.
  void* volatile block = std::malloc(counted_bytes);
  std::free(block);
  EXPECT_EQ(allocations(), before + 1);
}

TEST(AllocationTest, later_steps_allocate_no_data) {
  EXPECT_EQ(allocations_of_a_later_step({"lenet", {32, 32, 3}, 10}), 0);
  EXPECT_EQ(allocations_of_a_later_step({"convnet", {28, 28, 1}, 10}), 0);
  EXPECT_EQ(allocations_of_a_later_step({"resnet20", {32, 32, 3}, 10}), 0);
  EXPECT_EQ(allocations_of_a_later_step({"resnet18", {32, 32, 3}, 10, 8}), 0);
  EXPECT_EQ(allocations_of_a_later_step({"resnet50", {72, 72, 3}, 10, 8}), 0);
}

}  // namespace
}  // namespace lockstep::test
