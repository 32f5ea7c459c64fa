// Each layer alone: gradients against central differences, outputs against values worked out by hand.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "nn/conv_norm_act.hpp"
#include "nn/flatten.hpp"
#include "nn/gradient_check.hpp"
#include "nn/linear.hpp"
#include "nn/pooling.hpp"
#include "nn/residual.hpp"
#include "nn/sequential.hpp"
#include "support/device/devices.hpp"
#include "support/messages.hpp"

namespace lockstep::testing {
namespace {

// Three times what central differences in fp32 reach here.
constexpr double tolerance = 2e-3;

const ConvolutionOptions biased{Bias::learned, WeightScheme::uniform_fan_in};
const ConvolutionOptions biased_relu{Bias::learned, WeightScheme::uniform_fan_in, Activation::relu};

class LayerTest : public ::testing::TestWithParam<TestDevice> {
 protected:
  static LayerHarness harness(const LayerHarness::Make& make, const Shape& x, Layout layout = Layout::features) {
    return {GetParam().open({.threads = 1}), make, x, layout};
  }
};

std::unique_ptr<ConvNormAct> unit(const LayerContext& context, const std::string& name, const Conv2d& conv,
                                  Activation activation = Activation::relu) {
  return std::make_unique<ConvNormAct>(context, name, name + "_norm", conv, ConvolutionOptions{}, activation);
}

// Two 3x3 units, the first with the stride.
std::unique_ptr<Layer> basic_block(const LayerContext& context, std::unique_ptr<Layer> shortcut, std::int64_t in,
                                   std::int64_t out, std::int64_t stride) {
  auto first = unit(context, "conv1", {in, out, 3, stride, 1});
  return std::make_unique<Residual>(context, std::move(shortcut), std::move(first),
                                    unit(context, "conv2", {out, out, 3, 1, 1}));
}

TEST_P(LayerTest, convolution_has_right_gradients) {
  const auto make = [](const LayerContext& c) {
    return std::make_unique<Convolution>(c, "conv", Conv2d{4, 5, 3, 2, 1}, ConvolutionOptions{});
  };
  EXPECT_LE(harness(make, {2, 7, 5, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, convolution_with_bias_and_relu_has_right_gradients) {
  const auto make = [](const LayerContext& c) {
    return std::make_unique<Convolution>(c, "conv", Conv2d{4, 5, 3}, biased_relu);
  };
  EXPECT_LE(harness(make, {2, 6, 5, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, first_convolution_reads_images_and_has_right_weight_gradients) {
  const auto make = [](const LayerContext& c) {
    return std::make_unique<Convolution>(c, "conv", Conv2d{3, 5, 3}, biased_relu);
  };
  EXPECT_LE(harness(make, {2, 6, 5, 3}, Layout::images).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, conv_norm_act_has_right_gradients) {
  const auto make = [](const LayerContext& c) { return unit(c, "conv", {4, 6, 3, 1, 1}); };
  EXPECT_LE(harness(make, {3, 5, 4, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, conv_norm_act_without_activation_has_right_gradients) {
  const auto make = [](const LayerContext& c) { return unit(c, "conv", {4, 6, 1, 2, 0}, Activation::none); };
  EXPECT_LE(harness(make, {3, 6, 4, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, norm_absorbs_the_convolutions_bias) {
  const auto with = [](const LayerContext& c) {
    return std::make_unique<ConvNormAct>(c, "conv", "norm", Conv2d{3, 6, 3}, biased, Activation::relu);
  };
  LayerHarness harness_with = harness(with, {3, 6, 5, 3}, Layout::images);
  LayerHarness moved = harness(with, {3, 6, 5, 3}, Layout::images);
  moved.move_parameter(1, 3.0F);
  const std::vector<float> y = harness_with.forward(Mode::train);
  const std::vector<float> moved_y = moved.forward(Mode::train);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], moved_y[i], 1e-4);
}

// It trained, and in bf16 ended with values that are no numbers.
TEST_P(LayerTest, a_norm_of_one_value_per_channel_is_refused_in_training_alone) {
  const auto make = [](const LayerContext& c) { return unit(c, "conv", {4, 6, 3, 1, 1}); };
  LayerHarness alone = harness(make, {1, 1, 1, 4});
  expect_error(Failure::usage, {"conv_norm.weight"}, [&] { alone.forward(Mode::train); });
  EXPECT_EQ(alone.forward(Mode::evaluate).size(), 6U);
  EXPECT_EQ(harness(make, {2, 1, 1, 4}).forward(Mode::train).size(), 12U);
  EXPECT_EQ(harness(make, {1, 1, 2, 4}).forward(Mode::train).size(), 12U);
}

TEST_P(LayerTest, linear_has_right_gradients) {
  const auto make = [](const LayerContext& c) { return std::make_unique<Linear>(c, "fc", 7, 5); };
  EXPECT_LE(harness(make, {4, 7}, Layout::plain).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, linear_with_relu_has_right_gradients) {
  const auto make = [](const LayerContext& c) { return std::make_unique<Linear>(c, "fc", 7, 5, Activation::relu); };
  EXPECT_LE(harness(make, {4, 7}, Layout::plain).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, max_pool_has_right_gradients) {
  const auto make = [](const LayerContext& c) { return std::make_unique<MaxPool>(c, Pool2d{3, 2, 1}); };
  EXPECT_LE(harness(make, {2, 7, 6, 5}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, blur_has_right_gradients) {
  for (const std::int64_t stride : {1, 2}) {
    const auto make = [stride](const LayerContext& c) { return std::make_unique<Blur>(c, stride); };
    EXPECT_LE(harness(make, {2, 7, 6, 5}).worst_gradient_error(), tolerance) << stride;
  }
}

TEST_P(LayerTest, global_mean_pool_has_right_gradients) {
  const auto make = [](const LayerContext& c) { return std::make_unique<GlobalMeanPool>(c); };
  EXPECT_LE(harness(make, {2, 3, 4, 5}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, flatten_has_right_gradients) {
  const auto make = [](const LayerContext& c) { return std::make_unique<Flatten>(c); };
  EXPECT_LE(harness(make, {2, 3, 4, 5}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, flatten_orders_by_channel_row_column) {
  LayerHarness flatten = harness([](const LayerContext& c) { return std::make_unique<Flatten>(c); }, {1, 2, 2, 2});
  const std::vector<float> x = random_values(8, 1);  // [row][column][channel]
  EXPECT_EQ(flatten.forward(Mode::evaluate), (std::vector<float>{x[0], x[2], x[4], x[6], x[1], x[3], x[5], x[7]}));
}

TEST_P(LayerTest, subsample_keeps_every_second_pixel_and_adds_channels_of_zeros) {
  LayerHarness subsample =
      harness([](const LayerContext& c) { return std::make_unique<Subsample>(c, 2, 4); }, {1, 3, 3, 2});
  const std::vector<float> x = random_values(18, 1);
  const std::vector<float> expected = {x[0],  x[1],  0, 0, x[4],  x[5],  0, 0,   // row 0: columns 0 and 2
                                       x[12], x[13], 0, 0, x[16], x[17], 0, 0};  // row 2
  EXPECT_EQ(subsample.forward(Mode::evaluate), expected);
}

TEST_P(LayerTest, residual_block_with_identity_has_right_gradients) {
  const auto make = [](const LayerContext& c) { return basic_block(c, nullptr, 4, 4, 1); };
  EXPECT_LE(harness(make, {2, 4, 5, 4}).worst_gradient_error(), tolerance);
}

// Each finds the gradient of the norm at the end of what comes before it, where the device does so.
TEST_P(LayerTest, blocks_that_follow_each_other_have_right_gradients) {
  const auto make = [](const LayerContext& c) {
    auto net = std::make_unique<Sequential>();
    net->add(unit(c, "stem", {3, 4, 3, 1, 1}));
    net->add(basic_block(c, nullptr, 4, 4, 1));
    net->add(basic_block(c, unit(c, "shortcut", {4, 6, 1, 2, 0}, Activation::none), 4, 6, 2));
    return net;
  };
  EXPECT_LE(harness(make, {2, 5, 6, 3}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, residual_block_with_projection_has_right_gradients) {
  const auto make = [](const LayerContext& c) {
    return basic_block(c, unit(c, "shortcut", {4, 6, 1, 2, 0}, Activation::none), 4, 6, 2);
  };
  EXPECT_LE(harness(make, {2, 6, 5, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, residual_block_with_subsampling_has_right_gradients) {
  const auto make = [](const LayerContext& c) { return basic_block(c, std::make_unique<Subsample>(c, 2, 6), 4, 6, 2); };
  EXPECT_LE(harness(make, {2, 6, 5, 4}).worst_gradient_error(), tolerance);
}

INSTANTIATE_TEST_SUITE_P(, LayerTest, ::testing::ValuesIn(test_devices()),
                         [](const auto& test) { return test.param.name; });

TEST(LayerShapesTest, layers_refuse_shapes_they_cannot_take_in_one_sentence) {
  const auto device = open_test_device();
  ParameterStore store(*device);
  const StatisticsShare statistics;
  const LayerContext context{*device, store, statistics};
  const Convolution conv(context, "conv1", {3, 6, 5}, ConvolutionOptions{});
  const MaxPool pool(context, {2, 2});
  const auto message = [](const Layer& layer, const Shape& x) -> std::string {
    try {
      layer.output_shape(x);
    } catch (const Error& error) {
      return error.failure() == Failure::usage ? error.what() : "wrong failure code";
    }
    return "accepted";
  };
  expect_message(message(conv, {1, 32, 32, 1}), {"conv1", "32"});
  expect_message(message(conv, {1, 4, 32, 3}), {"--model", "conv1"});
  expect_message(message(pool, {1, 1, 1, 8}), {"--model"});
  EXPECT_EQ(message(conv, {1, 5, 5, 3}), "accepted");
}

}  // namespace
}  // namespace lockstep::testing
