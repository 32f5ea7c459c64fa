// What every model's training step keeps to: the order of reports, and memory that is given back.
#include <gtest/gtest.h>

#include <numeric>

#include "models/counter_values.hpp"
#include "models/test_net.hpp"
#include "nn/initialize.hpp"

namespace lockstep::test::training_step_test {

struct StepCase {
  ModelOptions model;
};

void PrintTo(const StepCase& c, std::ostream* stream) { *stream << c.model.name; }

class TrainingStepTest : public ::testing::TestWithParam<StepCase> {
 protected:
  static constexpr std::int64_t batch = 4;

  TrainingStepTest() : net(GetParam().model) {
    initialize(net.store, 1);
    const SampleShape& sample = GetParam().model.sample;
    const Shape shape{batch, sample.height, sample.width, sample.channels};
    images = make_images(*net.device, shape, counter_uniform(0, shape.count()));
    labels = make_labels(*net.device, std::vector<float>{0, 1, 2, 3});
  }

  TestNet net;
  Tensor images;
  Tensor labels;
};

TEST_P(TrainingStepTest, gradients_are_reported_once_in_reverse_order_of_registration) {
  RecordingSink sink;
  net.pass(images, labels, sink);
  std::vector<int> expected(net.store.parameters().size());
  std::iota(expected.rbegin(), expected.rend(), 0);
  EXPECT_EQ(sink.reported, expected);
}

TEST_P(TrainingStepTest, backward_gives_back_everything_that_forward_kept) {
  RecordingSink sink;
  net.pass(images, labels, sink);
  // First-fit: a block as large as everything a step needs lies where it lay before only if nothing is left in between.
  const Shape everything{net.device->peak_bytes() / 4};
  const std::byte* before = net.device->make(everything, DType::f32, Layout::plain).data();
  const std::int64_t peak = net.device->peak_bytes();
  net.pass(images, labels, sink);
  EXPECT_EQ(net.device->make(everything, DType::f32, Layout::plain).data(), before);
  EXPECT_EQ(net.device->peak_bytes(), peak);
}

TEST_P(TrainingStepTest, evaluation_keeps_nothing) {
  const Shape everything{1 << 20};
  const std::byte* before = net.device->make(everything, DType::f32, Layout::plain).data();
  net.model->forward(images, Mode::evaluate);
  EXPECT_EQ(net.device->make(everything, DType::f32, Layout::plain).data(), before);
}

TEST_P(TrainingStepTest, the_second_step_computes_the_same_bits) {
  RecordingSink sink;
  net.pass(images, labels, sink);
  const std::vector<float> first = read(*net.device, net.store.gradient_buffer());
  net.pass(images, labels, sink);
  EXPECT_EQ(read(*net.device, net.store.gradient_buffer()), first);
}

TEST_P(TrainingStepTest, a_part_contributes_its_share_of_gradients_and_statistics) {
  RecordingSink sink;
  net.pass(images, labels, sink);
  std::vector<float> halved = read(*net.device, net.store.gradient_buffer());
  const std::int64_t correct = net.store.gradient_count() + net.store.statistics_count() + ParameterStore::correct_slot;
  for (std::int64_t i = 0; i < correct; ++i) halved[static_cast<std::size_t>(i)] *= 0.5F;
  net.statistics.scale = 0.5F;
  net.pass(images, labels, sink);
  EXPECT_EQ(read(*net.device, net.store.gradient_buffer()), halved);
}

TEST_P(TrainingStepTest, a_second_part_adds_its_gradients_and_statistics) {
  net.statistics.scale = 0.5F;
  RecordingSink first;
  net.pass(images, labels, first);
  const std::vector<float> once = read(*net.device, net.store.gradient_buffer());
  RecordingSink second(Accumulate::add);
  net.pass(images, labels, second);
  const std::vector<float> twice = read(*net.device, net.store.gradient_buffer());
  for (std::size_t i = 0; i < once.size(); ++i) ASSERT_EQ(twice[i], 2.0F * once[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(, TrainingStepTest,
                         ::testing::Values(StepCase{{"lenet", {32, 32, 3}, 10}}, StepCase{{"convnet", {28, 28, 1}, 10}},
                                           StepCase{{"resnet20", {32, 32, 3}, 10}},
                                           StepCase{{"resnet18", {32, 32, 3}, 10, 8}},
                                           StepCase{{"resnet50", {72, 72, 3}, 10, 8}}),
                         [](const auto& one) { return one.param.model.name; });

}  // namespace lockstep::test::training_step_test
