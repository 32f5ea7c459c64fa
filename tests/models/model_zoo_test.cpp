// Which models there are, how large they are, and what they refuse.
#include "models/model_zoo.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "models/test_net.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::test::model_zoo_test {

// Registers a model without memory for its weights.
struct Registered {
  explicit Registered(const ModelOptions& options) : device(open_test_device()), store(*device) {
    model = make_model(options, {*device, store, statistics});
  }
  std::unique_ptr<Device> device;
  StatisticsShare statistics;
  ParameterStore store;
  std::unique_ptr<Network> model;
};

std::int64_t parameter_count(const ModelOptions& options) { return Registered(options).store.parameter_count(); }

std::vector<std::string> names(const ModelOptions& options) {
  const Registered net(options);
  std::vector<std::string> names;
  for (const Parameter& parameter : net.store.parameters()) names.push_back(parameter.name);
  for (const Statistic& statistic : net.store.statistics()) names.push_back(statistic.name);
  std::ranges::sort(names);
  return names;
}

template <typename Predicate>
std::vector<std::string> parameters_where(const ModelOptions& options, const Predicate& holds) {
  const Registered net(options);
  std::vector<std::string> names;
  for (const Parameter& parameter : net.store.parameters()) {
    if (holds(parameter)) names.push_back(parameter.name);
  }
  return names;
}

std::string refusal(const ModelOptions& options) {
  try {
    const Registered net(options);
  } catch (const Error& error) {
    return error.failure() == Failure::usage ? error.what() : "wrong failure code";
  }
  return "accepted";
}

TEST(ModelZooTest, parameter_counts_are_those_of_the_originals) {
  EXPECT_EQ(parameter_count({"airbench", {32, 32, 3}, 10}), 1972792);
  EXPECT_EQ(parameter_count({"airbench95", {32, 32, 3}, 10}), 4606520);
  EXPECT_EQ(parameter_count({"lenet", {32, 32, 3}, 10}), 62006);
  EXPECT_EQ(parameter_count({"convnet", {28, 28, 1}, 10}), 29034);
  EXPECT_EQ(parameter_count({"resnet20", {32, 32, 3}, 10}), 269722);
  EXPECT_EQ(parameter_count({"resnet18", {32, 32, 3}, 10}), 11173962);
  EXPECT_EQ(parameter_count({"resnet18", {224, 224, 3}, 1000}), 11689512);
  EXPECT_EQ(parameter_count({"resnet34", {224, 224, 3}, 1000}), 21797672);
  EXPECT_EQ(parameter_count({"resnet50", {224, 224, 3}, 1000}), 25557032);
  EXPECT_EQ(parameter_count({"resnet101", {224, 224, 3}, 1000}), 44549160);
}

TEST(ModelZooTest, blocks_may_begin_as_identities) {
  const auto zeros = [](const char* model, ResidualInit start) {
    ModelOptions options{model, {32, 32, 3}, 10};
    options.residual_init = start;
    return parameters_where(options, [](const Parameter& parameter) {
      const bool is_zero = parameter.initial.kind == Initial::Kind::constant && parameter.initial.size == 0;
      return parameter.role == ParameterRole::norm_scale && is_zero;
    });
  };
  EXPECT_TRUE(zeros("resnet18", ResidualInit::standard).empty());
  EXPECT_EQ(zeros("resnet18", ResidualInit::zero_gamma),
            (std::vector<std::string>{"layer1.0.bn2.weight", "layer1.1.bn2.weight", "layer2.0.bn2.weight",
                                      "layer2.1.bn2.weight", "layer3.0.bn2.weight", "layer3.1.bn2.weight",
                                      "layer4.0.bn2.weight", "layer4.1.bn2.weight"}));
  EXPECT_EQ(zeros("resnet50", ResidualInit::zero_gamma).size(), 16U);
  EXPECT_EQ(zeros("resnet50", ResidualInit::zero_gamma).front(), "layer1.0.bn3.weight");
  EXPECT_EQ(zeros("resnet20", ResidualInit::zero_gamma).size(), 9U);
}

TEST(ModelZooTest, convolutions_may_begin_as_identities) {
  const auto identities = [](const char* model, FilterInit start) {
    ModelOptions options{model, {32, 32, 3}, 10};
    options.filter_init = start;
    return parameters_where(options, [](const Parameter& parameter) { return parameter.initial.begins_with_identity; });
  };
  EXPECT_TRUE(identities("airbench", FilterInit::standard).empty());
  EXPECT_EQ(identities("airbench", FilterInit::identity),
            (std::vector<std::string>{"block1.conv1.weight", "block1.conv2.weight", "block2.conv1.weight",
                                      "block2.conv2.weight", "block3.conv1.weight", "block3.conv2.weight"}));
  EXPECT_EQ(identities("resnet20", FilterInit::identity).size(), 19U);
  EXPECT_EQ(identities("resnet50", FilterInit::identity).size(), 17U);  // not those of one pixel
}

TEST(ModelZooTest, blurred_maps_change_no_parameter) {
  for (const char* name : {"resnet20", "resnet18", "resnet50"}) {
    const std::string blurred = with_blur(name);
    EXPECT_EQ(blurred, std::string(name) + "-blur");
    EXPECT_EQ(with_blur(blurred), blurred);
    EXPECT_EQ(names({blurred, {32, 32, 3}, 10}), names({name, {32, 32, 3}, 10}));
    EXPECT_EQ(parameter_count({blurred, {32, 32, 3}, 10}), parameter_count({name, {32, 32, 3}, 10}));
  }
}

TEST(ModelZooTest, a_model_without_strided_convolutions_is_not_blurred) {
  expect_message(refusal({"lenet-blur", {32, 32, 3}, 10}), {"--blur-pool", "lenet"});
}

// It used to be taken without a word, and to do nothing.
TEST(ModelZooTest, a_model_without_blocks_has_no_other_start_of_them) {
  expect_message(
      refusal({.name = "lenet", .sample = {32, 32, 3}, .classes = 10, .residual_init = ResidualInit::zero_gamma}),
      {"--zero-init-gamma", "lenet"});
  EXPECT_EQ(
      refusal({.name = "resnet20", .sample = {32, 32, 3}, .classes = 10, .residual_init = ResidualInit::zero_gamma}),
      "accepted");
}

TEST(ModelZooTest, the_stem_follows_the_sample_size) {
  // 7x7 against 3x3 on three channels, 64 of them.
  constexpr std::int64_t larger_stem = 64 * 3 * (49 - 9);
  EXPECT_EQ(parameter_count({"resnet18", {65, 64, 3}, 10}) - parameter_count({"resnet18", {64, 64, 3}, 10}),
            larger_stem);
}

TEST(ModelZooTest, convnet_has_the_names_of_the_tutorial) {
  const std::vector<std::string> expected = {"fc.bias",
                                             "fc.weight",
                                             "layer1.0.bias",
                                             "layer1.0.weight",
                                             "layer1.1.bias",
                                             "layer1.1.running_mean",
                                             "layer1.1.running_var",
                                             "layer1.1.weight",
                                             "layer2.0.bias",
                                             "layer2.0.weight",
                                             "layer2.1.bias",
                                             "layer2.1.running_mean",
                                             "layer2.1.running_var",
                                             "layer2.1.weight"};
  EXPECT_EQ(names({"convnet", {28, 28, 1}, 10}), expected);
}

TEST(ModelZooTest, logits_are_one_row_a_sample) {
  for (const char* name : {"convnet", "lenet", "resnet18", "resnet20", "resnet34", "resnet50", "resnet101"}) {
    EXPECT_EQ(model_graph({name, {32, 40, 3}, 7}).nodes().back().shape, (ValueShape{0, 0, 7})) << name;
  }
}

TEST(ModelZooTest, an_unknown_name_is_answered_with_the_known_ones) {
  expect_message(refusal({"resnet81", {32, 32, 3}, 10}), {"--model", "resnet81"});
}

TEST(ModelZooTest, samples_that_are_too_small_are_refused) {
  expect_message(refusal({"lenet", {15, 32, 3}, 10}), {"--model", "lenet"});
  expect_message(refusal({"convnet", {28, 3, 1}, 10}), {"--model", "convnet"});
  EXPECT_EQ(refusal({"lenet", {16, 16, 3}, 10}), "accepted");
  EXPECT_EQ(refusal({"convnet", {4, 4, 1}, 10}), "accepted");
  EXPECT_EQ(refusal({"resnet50", {1, 1, 3}, 10}), "accepted");
}

TEST(ModelZooTest, a_model_with_a_weight_for_each_pixel_takes_images_of_its_own_size_alone) {
  const auto message = [](const char* model, std::int64_t side) {
    return message_of(Failure::usage, [&] { require_takes({model, {32, 32, 3}, 10}, side, side); });
  };
  expect_message(message("lenet", 24), {"--image-size-ramp", "lenet"});
  EXPECT_NE(message("convnet", 24), "no error");
  EXPECT_EQ(message("convnet", 32), "no error");
  EXPECT_EQ(message("resnet20", 24), "no error");
  EXPECT_EQ(message("resnet101", 64), "no error");
}

TEST(ModelZooTest, samples_with_other_than_one_to_three_channels_are_refused) {
  expect_message(refusal({"resnet20", {32, 32, 4}, 10}), {"--data", "resnet20"});
  expect_message(refusal({"resnet20", {32, 32, 0}, 10}), {"--data", "resnet20"});
}

TEST(ModelZooTest, no_classes_are_refused) {
  expect_message(refusal({"resnet20", {32, 32, 3}, 0}), {"--data", "resnet20"});
}

}  // namespace lockstep::test::model_zoo_test
