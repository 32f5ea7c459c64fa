#include "network/graph.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "network/build.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::graph_test {

using namespace build;

TEST(GraphTest, shapes_follow_from_the_operations) {
  NetworkGraph graph({33, 32, 3});
  Value x = conv(input(graph), "conv", {.out = 8, .kernel = 3, .stride = 2, .padding = 1});
  EXPECT_EQ(x.shape(), (ValueShape{17, 16, 8}));
  x = relu(batch_norm(x, "bn"));
  EXPECT_EQ(x.shape(), (ValueShape{17, 16, 8}));
  EXPECT_EQ(max_pool(x, {.kernel = 2, .stride = 2}).shape(), (ValueShape{8, 8, 8}));
  EXPECT_EQ(blur(x, 2).shape(), (ValueShape{9, 8, 8}));
  EXPECT_EQ(subsample(x, 2, 20).shape(), (ValueShape{9, 8, 20}));
  EXPECT_EQ(add(x, x).shape(), x.shape());
  EXPECT_EQ(concat({x, x, blur(x, 1)}).shape(), (ValueShape{17, 16, 24}));
  EXPECT_EQ(average_pool(x, {.kernel = 2, .stride = 2, .ceil = true}).shape(), (ValueShape{9, 8, 8}));
  EXPECT_EQ(clip(sigmoid(tanh(gelu(leaky_relu(x, 0.1F)))), 0, 6).shape(), x.shape());
  EXPECT_EQ(flatten(x).shape(), (ValueShape{0, 0, 17 * 16 * 8}));
  EXPECT_EQ(linear(global_mean_pool(x), "fc", 10).shape(), (ValueShape{0, 0, 10}));
  const ConvOptions by_columns{.out = 4, .kernel = {1, 7}, .stride = {1, 2}, .padding = {0, 3}};
  EXPECT_EQ(conv(x, "columns", by_columns).shape(), (ValueShape{17, 8, 4}));
  EXPECT_EQ(conv(x, "rows", {.out = 4, .kernel = {5, 1}, .stride = {2, 1}}).shape(), (ValueShape{7, 16, 4}));
  EXPECT_EQ(x.shape().text(), "17 x 16 x 8");
}

TEST(GraphTest, nodes_without_parameters_are_named_after_their_kind) {
  NetworkGraph graph({8, 8, 3});
  const Value x = conv(input(graph), "stem", {.out = 4, .kernel = 1});
  add(relu(x), x);
  EXPECT_EQ(graph.node(1).name, "stem");
  EXPECT_EQ(graph.node(2).name, "Relu_2");
  EXPECT_EQ(graph.node(3).name, "Add_3");
  EXPECT_EQ(graph.reader_counts(), (std::vector<int>{1, 2, 1, 0}));
}

TEST(GraphTest, an_operation_that_cannot_take_its_input_is_refused_by_name) {
  NetworkGraph graph({4, 32, 3});
  const Value x = input(graph);
  const Value row = flatten(x);
  const auto message = [](const auto& operation) { return message_of(Failure::usage, operation); };
  expect_message(message([&] { conv(x, "conv1", {.out = 6, .kernel = 5}); }), {"conv1", "5 x 5", "--model"});
  expect_message(message([&] { conv(x, "rows", {.out = 6, .kernel = {7, 3}, .padding = {1, 0}}); }), {"rows", "5 x 3"});
  expect_message(message([&] { conv(x, "rows", {.out = 6, .kernel = {7, 3}, .padding = {0, 2}}); }), {"rows", "7 x 1"});
  expect_message(message([&] { max_pool(x, {.kernel = 7, .stride = 2}); }), {"MaxPool_2", "7 x 7", "--model"});
  expect_message(message([&] { conv(row, "conv2", {.out = 6, .kernel = 1}); }), {"conv2", "384"});
  expect_message(message([&] { batch_norm(row, "bn"); }), {"bn", "384"});
  expect_message(message([&] { linear(x, "fc", 10); }), {"fc", "4 x 32 x 3"});
  expect_message(message([&] { add(x, conv(x, "conv3", {.out = 6, .kernel = 1})); }), {"4 x 32 x 3", "4 x 32 x 6"});
  expect_message(message([&] { concat({x, max_pool(x, {.kernel = 2, .stride = 2})}); }), {"4 x 32 x 3", "2 x 16 x 3"});
  expect_message(message([&] { concat({row, row}); }), {"Concat", "384"});
  expect_message(message([&] { average_pool(x, {.kernel = 6, .stride = 2, .ceil = true}); }), {"AveragePool", "5 x 5"});
  EXPECT_NE(
      message([&] { graph.add("conv4", op::Convolution{{.in_channels = 1, .out_channels = 6, .kernel = 1}}, {0}); }),
      "no error");
}

TEST(GraphTest, the_same_network_for_other_images_has_other_shapes_or_is_refused) {
  NetworkGraph graph({8, 8, 3});
  const Value x = max_pool(conv(input(graph), "conv", {.out = 4, .kernel = 3}), {.kernel = 2, .stride = 2});
  linear(flatten(x), "fc", 2);
  EXPECT_EQ(graph.for_input({8, 8, 3}).nodes().back().shape, (ValueShape{0, 0, 2}));
  expect_message(message_of(Failure::usage, [&] { graph.for_input({10, 8, 3}); }), {"fc", "36"});
  expect_message(message_of(Failure::usage, [&] { graph.for_input({2, 8, 3}); }), {"conv"});
}

}  // namespace lockstep::graph_test
