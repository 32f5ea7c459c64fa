#include "network/cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "models/model_zoo.hpp"
#include "network/build.hpp"

namespace lockstep::cost_test {

using testing::HasSubstr;

std::int64_t parameters(const NetworkGraph& graph) {
  std::int64_t sum = 0;
  for (std::size_t node = 0; node < graph.nodes().size(); ++node) sum += parameter_count(graph, node);
  return sum;
}

// Parameters and multiply-adds as torchvision documents its models.
TEST(CostTest, parameters_and_work_are_those_of_the_originals) {
  const auto of = [](const char* name) { return model_graph({name, {224, 224, 3}, 1000}); };
  EXPECT_EQ(parameters(of("resnet18")), 11689512);
  EXPECT_EQ(parameters(of("resnet50")), 25557032);
  EXPECT_NEAR(multiply_adds(of("resnet18")) / 1e9, 1.81, 0.005);
  EXPECT_NEAR(multiply_adds(of("resnet34")) / 1e9, 3.66, 0.005);
  EXPECT_NEAR(multiply_adds(of("resnet50")) / 1e9, 4.09, 0.005);
  EXPECT_NEAR(multiply_adds(of("resnet101")) / 1e9, 7.80, 0.005);
  EXPECT_EQ(parameters(model_graph({"lenet", {32, 32, 3}, 10})), 62006);
  EXPECT_EQ(multiply_adds(model_graph({"lenet", {32, 32, 3}, 10})),
            28 * 28 * 6 * 75 + 10 * 10 * 16 * 150 + 400 * 120 + 120 * 84 + 84 * 10);
}

TEST(CostTest, the_table_has_a_row_for_each_layer_in_80_columns) {
  const std::string table = network_table(model_graph({"resnet50", {224, 224, 3}, 1000}));
  std::istringstream lines(table);
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_EQ(rows, 2 + 53 + 3 + 1U);  // head and input, convolutions, max, mean and linear, total
  EXPECT_THAT(table, HasSubstr("layer1.0.conv3"));
  EXPECT_THAT(table, HasSubstr("conv 1x1 norm add relu"));
  EXPECT_THAT(table, HasSubstr("25,557,032"));
}

TEST(CostTest, rows_and_columns_of_a_convolution_may_differ) {
  using namespace build;
  NetworkGraph graph({16, 16, 3});
  Value x = conv(input(graph), "stem", {.out = 4, .kernel = {1, 7}, .padding = {0, 3}});
  x = conv(x, "rows", {.out = 8, .kernel = {3, 1}, .stride = {2, 1}, .padding = {1, 0}});
  EXPECT_EQ(parameters(graph), 4 * 3 * 7 + 8 * 4 * 3);
  EXPECT_EQ(multiply_adds(graph), 16 * 16 * 4 * 3 * 7 + 8 * 16 * 8 * 4 * 3);
  const std::string table = network_table(graph);
  EXPECT_THAT(table, testing::ContainsRegex("stem +conv 1x7 +16x16x4 "));
  EXPECT_THAT(table, testing::ContainsRegex("rows +conv 3x1/2x1 +8x16x8 "));
}

TEST(CostTest, a_norm_that_is_a_layer_counts_once) {
  using namespace build;
  NetworkGraph graph({8, 8, 3});
  Value x = relu(batch_norm(conv(input(graph), "stem", {.out = 4, .kernel = 1, .has_bias = true}), "bn"));
  x = gelu(relu(batch_norm(concat({x, x}), "bn2")));
  linear(global_mean_pool(average_pool(x, {.kernel = 2, .stride = 2})), "fc", 5, false);
  const std::string table = network_table(graph);
  EXPECT_EQ(parameters(graph), 16 + 8 + 16 + 40);
  EXPECT_THAT(table, testing::ContainsRegex("bn2 +norm relu +8x8x8 +16\n"));
  EXPECT_THAT(table, testing::ContainsRegex("AveragePool_8 +mean 2x2/2 +4x4x8\n"));
  EXPECT_THAT(table, testing::ContainsRegex("Gelu_7 +gelu +8x8x8\n"));
  EXPECT_THAT(table, testing::ContainsRegex("total +80 "));
}

}  // namespace lockstep::cost_test
