// Each layer alone: gradients against central differences, outputs against values worked out by hand.
#include <gtest/gtest.h>

#include "nn/gradient_check.hpp"
#include "support/device/devices.hpp"
#include "support/messages.hpp"

namespace lockstep::test {
namespace {

using namespace build;

// Three times what central differences in fp32 reach here.
constexpr double tolerance = 2e-3;

class LayerTest : public ::testing::TestWithParam<TestDevice> {
 protected:
  static LayerHarness harness(const Describe& describe, const Shape& x, Layout layout = Layout::features) {
    return {GetParam().open({.threads = 1}), describe, x, layout};
  }
};

Value unit(Value x, const std::string& name, const ConvOptions& options) {
  return batch_norm(conv(x, name, options), name + "_norm");
}

enum class Shortcut { identity, projection, subsample };

// Two 3x3 units, the first with the stride.
Value basic_block(Value x, const std::string& name, std::int64_t out, std::int64_t stride, Shortcut shortcut) {
  Value skipped = x;
  if (shortcut == Shortcut::projection) {
    skipped = unit(x, name + "shortcut", {.out = out, .kernel = 1, .stride = stride});
  }
  if (shortcut == Shortcut::subsample) skipped = subsample(x, stride, out);
  x = relu(unit(x, name + "conv1", {.out = out, .kernel = 3, .stride = stride, .padding = 1}));
  return relu(add(unit(x, name + "conv2", {.out = out, .kernel = 3, .padding = 1}), skipped));
}

TEST_P(LayerTest, convolution_has_right_gradients) {
  const auto net = [](Value x) { return conv(x, "conv", {.out = 5, .kernel = 3, .stride = 2, .padding = 1}); };
  EXPECT_LE(harness(net, {2, 7, 5, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, convolution_whose_rows_and_columns_differ_has_right_gradients) {
  const auto net = [](Value x) {
    x = relu(unit(x, "rows", {.out = 6, .kernel = {3, 1}, .stride = {1, 2}, .padding = {1, 0}}));
    return conv(x, "columns", {.out = 5, .kernel = {1, 5}, .stride = {2, 1}, .padding = {0, 2}, .has_bias = true});
  };
  EXPECT_LE(harness(net, {2, 7, 9, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, convolution_with_bias_and_relu_has_right_gradients) {
  const auto net = [](Value x) { return relu(conv(x, "conv", {.out = 5, .kernel = 3, .has_bias = true})); };
  EXPECT_LE(harness(net, {2, 6, 5, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, first_convolution_reads_images_and_has_right_weight_gradients) {
  const auto net = [](Value x) { return relu(conv(x, "conv", {.out = 5, .kernel = 3, .has_bias = true})); };
  EXPECT_LE(harness(net, {2, 6, 5, 3}, Layout::images).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, conv_norm_act_has_right_gradients) {
  const auto net = [](Value x) { return relu(unit(x, "conv", {.out = 6, .kernel = 3, .padding = 1})); };
  EXPECT_LE(harness(net, {3, 5, 4, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, conv_norm_act_without_activation_has_right_gradients) {
  const auto net = [](Value x) { return unit(x, "conv", {.out = 6, .kernel = 1, .stride = 2}); };
  EXPECT_LE(harness(net, {3, 6, 4, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, norm_absorbs_the_convolutions_bias) {
  const auto net = [](Value x) { return relu(unit(x, "conv", {.out = 6, .kernel = 3, .has_bias = true})); };
  LayerHarness with = harness(net, {3, 6, 5, 3}, Layout::images);
  LayerHarness moved = harness(net, {3, 6, 5, 3}, Layout::images);
  moved.move_parameter(1, 3.0F);
  const std::vector<float> y = with.forward(Mode::train);
  const std::vector<float> moved_y = moved.forward(Mode::train);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], moved_y[i], 1e-4);
}

// It trained, and in bf16 ended with values that are no numbers.
TEST_P(LayerTest, a_norm_of_one_value_per_channel_is_refused_in_training_alone) {
  const auto net = [](Value x) { return relu(unit(x, "conv", {.out = 6, .kernel = 3, .padding = 1})); };
  LayerHarness alone = harness(net, {1, 1, 1, 4});
  expect_error(Failure::usage, {"conv_norm.weight"}, [&] { alone.forward(Mode::train); });
  EXPECT_EQ(alone.forward(Mode::evaluate).size(), 6U);
  EXPECT_EQ(harness(net, {2, 1, 1, 4}).forward(Mode::train).size(), 12U);
  EXPECT_EQ(harness(net, {1, 1, 2, 4}).forward(Mode::train).size(), 12U);
}

TEST_P(LayerTest, linear_has_right_gradients) {
  const auto net = [](Value x) { return linear(x, "fc", 5); };
  EXPECT_LE(harness(net, {4, 7}, Layout::plain).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, linear_with_relu_has_right_gradients) {
  const auto net = [](Value x) { return relu(linear(x, "fc", 5)); };
  EXPECT_LE(harness(net, {4, 7}, Layout::plain).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, max_pool_has_right_gradients) {
  const auto net = [](Value x) { return max_pool(x, {3, 2, 1}); };
  EXPECT_LE(harness(net, {2, 7, 6, 5}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, pooling_whose_last_window_reaches_beyond_the_map_has_right_gradients) {
  const auto largest = [](Value x) { return max_pool(x, {.kernel = 3, .stride = 2, .ceil = true}); };
  EXPECT_LE(harness(largest, {2, 6, 4, 5}).worst_gradient_error(), tolerance);
  const auto mean = [](Value x) {
    return average_pool(x, {.kernel = 3, .stride = 2, .padding = 1, .ceil = true}, true);
  };
  EXPECT_LE(harness(mean, {2, 6, 5, 5}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, blur_has_right_gradients) {
  for (const std::int64_t stride : {1, 2}) {
    const auto net = [stride](Value x) { return blur(x, stride); };
    EXPECT_LE(harness(net, {2, 7, 6, 5}).worst_gradient_error(), tolerance) << stride;
  }
}

TEST_P(LayerTest, global_mean_pool_has_right_gradients) {
  EXPECT_LE(harness(global_mean_pool, {2, 3, 4, 5}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, flatten_has_right_gradients) {
  EXPECT_LE(harness(flatten, {2, 3, 4, 5}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, flatten_orders_by_channel_row_column) {
  const std::vector<float> x = random_values(8, 1);  // [row][column][channel]
  EXPECT_EQ(harness(flatten, {1, 2, 2, 2}).forward(Mode::evaluate),
            (std::vector<float>{x[0], x[2], x[4], x[6], x[1], x[3], x[5], x[7]}));
}

TEST_P(LayerTest, subsample_keeps_every_second_pixel_and_adds_channels_of_zeros) {
  const auto net = [](Value x) { return subsample(x, 2, 4); };
  const std::vector<float> x = random_values(18, 1);
  const std::vector<float> expected = {x[0],  x[1],  0, 0, x[4],  x[5],  0, 0,   // row 0: columns 0 and 2
                                       x[12], x[13], 0, 0, x[16], x[17], 0, 0};  // row 2
  EXPECT_EQ(harness(net, {1, 3, 3, 2}).forward(Mode::evaluate), expected);
}

TEST_P(LayerTest, residual_blocks_have_right_gradients) {
  const auto block = [](std::int64_t out, std::int64_t stride, Shortcut shortcut) {
    return [=](Value x) { return basic_block(x, "", out, stride, shortcut); };
  };
  EXPECT_LE(harness(block(4, 1, Shortcut::identity), {2, 4, 5, 4}).worst_gradient_error(), tolerance);
  EXPECT_LE(harness(block(6, 2, Shortcut::projection), {2, 6, 5, 4}).worst_gradient_error(), tolerance);
  EXPECT_LE(harness(block(6, 2, Shortcut::subsample), {2, 6, 5, 4}).worst_gradient_error(), tolerance);
}

// Each computes the gradient of the norm before it, where the device does so.
TEST_P(LayerTest, blocks_that_follow_each_other_have_right_gradients) {
  const auto net = [](Value x) {
    x = relu(unit(x, "stem", {.out = 4, .kernel = 3, .padding = 1}));
    x = basic_block(x, "first_", 4, 1, Shortcut::identity);
    return basic_block(x, "second_", 6, 2, Shortcut::projection);
  };
  EXPECT_LE(harness(net, {2, 5, 6, 3}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, constants_have_right_gradients_and_are_no_parameters) {
  const auto one = [](Value value) { return shift(scale(value, {-1.5F}), {0.25F}); };
  EXPECT_LE(harness(one, {2, 3, 2, 5}).worst_gradient_error(), tolerance);
  EXPECT_LE(harness(one, {4, 7}, Layout::plain).worst_gradient_error(), tolerance);
  const auto by_channel = [](Value value) { return shift(scale(value, {2, -1, 0.5F}), {1, 2, -3}); };
  EXPECT_LE(harness(by_channel, {2, 3, 2, 3}).worst_gradient_error(), tolerance);
  const std::vector<float> x = random_values(6, 1);
  const std::vector<float> expected = {2 * x[0] + 1, -x[1] + 2, x[2] / 2 - 3, 2 * x[3] + 1, -x[4] + 2, x[5] / 2 - 3};
  const std::vector<float> y = harness(by_channel, {1, 1, 2, 3}).forward(Mode::evaluate);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-5) << i;
}

TEST_P(LayerTest, dropout_has_right_gradients_and_drops_nothing_in_evaluation) {
  const auto net = [](Value value) { return dropout(relu(linear(dropout(value, 0.25F), "fc", 12)), 0.5F); };
  LayerHarness rows = harness(net, {4, 7}, Layout::plain);
  EXPECT_LE(rows.worst_gradient_error(), tolerance);
  const std::vector<float> first = rows.forward(Mode::train);
  EXPECT_EQ(rows.forward(Mode::train), first);
  rows.network().draw_dropout(1, 1, 0);
  EXPECT_NE(rows.forward(Mode::train), first);
  EXPECT_LE(harness([](Value value) { return dropout(value, 0.5F); }, {2, 3, 2, 5}).worst_gradient_error(), tolerance);
  const std::vector<float> x = random_values(12, 1);
  EXPECT_EQ(harness([](Value value) { return dropout(value, 0.5F); }, {2, 1, 2, 3}).forward(Mode::evaluate), x);
}

TEST_P(LayerTest, a_norm_of_rows_has_right_gradients) {
  const auto net = [](Value x) { return relu(flatten(batch_norm(unflatten(linear(x, "fc", 6, false)), "bn"))); };
  EXPECT_LE(harness(net, {5, 7}, Layout::plain).worst_gradient_error(), tolerance);
}

// Three readers of one value: a convolution, a block's shortcut and a second block's.
TEST_P(LayerTest, a_value_that_several_layers_read_has_the_sum_of_their_gradients) {
  const auto net = [](Value x) {
    const Value first = relu(unit(x, "first", {.out = 4, .kernel = 3, .padding = 1}));
    const Value second = relu(add(unit(first, "second", {.out = 4, .kernel = 3, .padding = 1}), first));
    return relu(add(unit(second, "third", {.out = 4, .kernel = 1}), first));
  };
  EXPECT_LE(harness(net, {2, 3, 3, 4}).worst_gradient_error(), tolerance);
  EXPECT_LE(harness(net, {2, 3, 3, 3}, Layout::images).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, a_layer_may_add_the_value_that_it_reads) {
  const auto net = [](Value x) {
    const Value first = relu(unit(x, "first", {.out = 4, .kernel = 3, .padding = 1}));
    return relu(add(unit(first, "second", {.out = 4, .kernel = 3, .padding = 1}), first));
  };
  EXPECT_LE(harness(net, {2, 3, 3, 4}).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, norm_alone_has_right_gradients) {
  EXPECT_LE(
      harness([](Value x) { return batch_norm(x, "bn", {.epsilon = 0.1F}); }, {3, 4, 5, 3}).worst_gradient_error(),
      tolerance);
  const auto net = [](Value x) { return relu(add(batch_norm(x, "bn"), x)); };
  EXPECT_LE(harness(net, {3, 4, 5, 3}).worst_gradient_error(), tolerance);
}

// He et al. 2016: norms and activations come before convolutions, and sums follow convolutions.
TEST_P(LayerTest, pre_activation_blocks_have_right_gradients) {
  const auto block = [](Value x, const std::string& name) {
    const Value y = conv(relu(batch_norm(x, name + "bn1")), name + "conv1", {.out = 4, .kernel = 3, .padding = 1});
    return add(conv(relu(batch_norm(y, name + "bn2")), name + "conv2", {.out = 4, .kernel = 3, .padding = 1}), x);
  };
  const auto net = [&](Value x) { return relu(block(conv(x, "stem", {.out = 4, .kernel = 3, .padding = 1}), "a_")); };
  EXPECT_LE(harness(net, {2, 4, 5, 3}, Layout::images).worst_gradient_error(), tolerance);
}

// Huang et al. 2017: each unit reads what all before it have computed.
TEST_P(LayerTest, dense_blocks_have_right_gradients) {
  const auto net = [](Value x) {
    std::vector<Value> all = {conv(x, "stem", {.out = 5, .kernel = 3, .padding = 1})};
    for (const char* name : {"a", "b"}) {
      const Value joined = relu(batch_norm(concat(all), std::string(name) + "_bn"));
      all.push_back(conv(joined, name, {.out = 3, .kernel = 3, .padding = 1}));
    }
    return average_pool(concat(all), {.kernel = 2, .stride = 2});
  };
  EXPECT_LE(harness(net, {3, 4, 4, 3}, Layout::images).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, a_value_added_to_or_joined_with_itself_has_twice_the_gradient) {
  EXPECT_LE(harness([](Value x) { return add(x, x); }, {2, 3, 4, 5}).worst_gradient_error(), tolerance);
  EXPECT_LE(harness([](Value x) { return concat({x, x}); }, {2, 3, 4, 5}).worst_gradient_error(), tolerance);
  const auto net = [](Value x) { return add(tanh(x), add(sigmoid(x), add(gelu(x), x))); };
  EXPECT_LE(harness(net, {2, 3, 4, 5}).worst_gradient_error(), tolerance);
  EXPECT_LE(harness(net, {3, 7}, Layout::plain).worst_gradient_error(), tolerance);
}

TEST_P(LayerTest, activations_alone_have_right_gradients) {
  const std::vector<Describe> activations = {relu,
                                             sigmoid,
                                             tanh,
                                             gelu,
                                             [](Value x) { return leaky_relu(x, 0.2F); },
                                             [](Value x) { return clip(x, -0.5F, 0.7F); }};
  for (const Describe& activation : activations) {
    EXPECT_LE(harness(activation, {2, 3, 4, 5}).worst_gradient_error(), tolerance);
    EXPECT_LE(harness(activation, {4, 7}, Layout::plain).worst_gradient_error(), tolerance);
  }
}

TEST_P(LayerTest, linear_without_bias_has_right_gradients) {
  const auto net = [](Value x) { return linear(relu(linear(x, "a", 6, false)), "b", 3, false); };
  EXPECT_LE(harness(net, {4, 7}, Layout::plain).worst_gradient_error(), tolerance);
}

// As with requires_grad = False of PyTorch.
class FrozenTest : public LayerTest {
 protected:
  static Value net(Value x) {
    const Value first = relu(unit(x, "stem", {.out = 8, .kernel = 3, .padding = 1}));
    const Value second = basic_block(first, "a_", 8, 1, Shortcut::identity);
    const Value third = basic_block(second, "b_", 16, 2, Shortcut::projection);
    return linear(global_mean_pool(third), "fc", 5);
  }
  static LayerHarness whole() { return harness(net, {4, 12, 12, 3}, Layout::images); }
};

TEST_P(FrozenTest, parameters_that_do_not_learn_have_no_gradient_and_the_others_keep_theirs) {
  RecordingSink order;
  const auto expected = whole().gradients(order);
  const std::vector<std::function<bool(const std::string&)>> rules = {
      [](const std::string& name) { return name != "fc.weight"; },
      [](const std::string& name) { return !name.starts_with("fc"); },
      [](const std::string& name) { return !name.starts_with("fc") && !name.starts_with("b_"); },
      [](const std::string& name) { return name.starts_with("stem"); },
      [](const std::string& name) { return name == "stem.weight"; },
      [](const std::string& name) { return name.find("norm") != std::string::npos; },
      [](const std::string& name) { return name.find("conv") != std::string::npos; },
      [](const std::string& name) { return name == "fc.weight" || name == "a_conv2_norm.bias"; },
      [](const std::string&) { return true; },
  };
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    SCOPED_TRACE(rule);
    LayerHarness some = whole();
    RecordingSink sink;
    some.gradients(sink);  // what remains of a step before
    for (Parameter& parameter : some.parameters()) parameter.learns = !rules[rule](parameter.name);
    sink.reported.clear();
    const auto gradients = some.gradients(sink);
    EXPECT_EQ(sink.reported, order.reported);
    for (const Parameter& parameter : some.parameters()) {
      const auto index = static_cast<std::size_t>(parameter.index);
      const std::vector<float> zeros(expected[index].size(), 0.0F);
      EXPECT_EQ(gradients[index], parameter.learns ? expected[index] : zeros) << parameter.name;
    }
  }
}

TEST_P(FrozenTest, what_backward_does_not_reach_is_not_kept) {
  RecordingSink sink;
  LayerHarness all = whole();
  LayerHarness head = whole();
  for (Parameter& parameter : head.parameters()) parameter.learns = parameter.name.starts_with("fc");
  all.gradients(sink);
  head.gradients(sink);
  EXPECT_LT(head.peak_bytes(), all.peak_bytes());
}

INSTANTIATE_TEST_SUITE_P(, FrozenTest, ::testing::ValuesIn(test_devices()),
                         [](const auto& one) { return one.param.name; });

INSTANTIATE_TEST_SUITE_P(, LayerTest, ::testing::ValuesIn(test_devices()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lockstep::test
