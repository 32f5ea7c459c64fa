#include "network/fusion.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "models/model_zoo.hpp"
#include "network/build.hpp"

namespace lockstep::fusion_test {

using namespace build;
using testing::ElementsAre;

// Each layer as "main reader" and, if it may compute the norm's gradient of another layer, "main reader <other".
std::vector<std::string> described(const NetworkGraph& graph) {
  const std::vector<LayerSpec> layers = fuse(graph);
  std::vector<std::string> texts;
  for (const LayerSpec& layer : layers) {
    const char* const reader = layer.norm_reader == NormReader::deferred   ? " deferred"
                               : layer.norm_reader == NormReader::gradient ? " gradient"
                                                                           : "";
    texts.push_back(graph.node(layer.main).name + reader);
    if (layer.previous_norm) texts.back() += " <" + graph.node(layers[*layer.previous_norm].main).name;
  }
  return texts;
}

Value unit(Value x, const std::string& name, std::int64_t out, std::int64_t stride = 1) {
  return batch_norm(conv(x, name, {.out = out, .kernel = 1, .stride = stride}), name + ".norm");
}

TEST(FusionTest, a_convolution_takes_its_norm_the_addition_and_the_activation) {
  NetworkGraph graph({8, 8, 3});
  const Value x = relu(unit(input(graph), "a", 4));
  relu(add(unit(x, "b", 4), x));
  const std::vector<LayerSpec> layers = fuse(graph);
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(graph.node(*layers[1].norm).name, "b.norm");
  EXPECT_TRUE(layers[1].adds);
  EXPECT_EQ(layers[1].activation, Activation::relu);
  EXPECT_THAT(layers[1].inputs, ElementsAre(x.node, x.node));
  EXPECT_EQ(layers[1].output, graph.nodes().size() - 1);
}

TEST(FusionTest, a_norm_is_deferred_to_a_convolution_that_reads_it_alone) {
  NetworkGraph graph({8, 8, 3});
  Value x = relu(unit(relu(unit(input(graph), "a", 4)), "b", 4));
  x = max_pool(x, {.kernel = 2, .stride = 2});
  conv(relu(unit(x, "c", 4)), "d", {.out = 2, .kernel = 1});
  EXPECT_THAT(described(graph), ElementsAre("a deferred", "b <a", "MaxPool_7", "c deferred", "d <c"));
}

TEST(FusionTest, a_norm_that_several_layers_read_leaves_its_gradient_to_the_last_in_backward) {
  NetworkGraph graph({8, 8, 3});
  Value x = relu(unit(input(graph), "stem", 4));
  x = relu(add(unit(relu(unit(x, "a", 4)), "b", 4), x));
  const Value shortcut = unit(x, "shortcut", 6, 2);
  x = relu(add(unit(relu(unit(x, "c", 6, 2)), "d", 6), shortcut));
  const Value kept = subsample(x, 1, 8);
  relu(add(unit(relu(unit(x, "e", 8)), "f", 8), kept));
  EXPECT_THAT(described(graph), ElementsAre("stem gradient", "a deferred <stem", "b gradient <a", "shortcut <b",
                                            "c deferred", "d <c", "Subsample_20", "e deferred", "f <e"));
}

TEST(FusionTest, a_norm_after_a_biased_convolution_leaves_nothing) {
  NetworkGraph graph({8, 8, 3});
  const Value x = conv(input(graph), "a", {.out = 4, .kernel = 1, .has_bias = true});
  conv(relu(batch_norm(x, "norm")), "b", {.out = 4, .kernel = 1});
  EXPECT_THAT(described(graph), ElementsAre("a", "b"));
}

// The gradient of the value is not complete before that layer has ended.
TEST(FusionTest, a_norm_leaves_nothing_to_a_layer_that_also_adds_its_value) {
  NetworkGraph graph({8, 8, 3});
  const Value x = relu(unit(input(graph), "a", 4));
  relu(add(unit(x, "b", 4), x));
  EXPECT_THAT(described(graph), ElementsAre("a", "b"));
}

// The sum must be in memory.
TEST(FusionTest, a_norm_before_an_addition_leaves_its_gradient_alone) {
  NetworkGraph graph({8, 8, 3});
  const Value x = relu(unit(input(graph), "a", 4));
  conv(relu(add(unit(x, "b", 4), x)), "c", {.out = 4, .kernel = 1});
  EXPECT_THAT(described(graph), ElementsAre("a", "b gradient", "c <b"));
}

TEST(FusionTest, a_value_that_something_else_reads_ends_its_layer) {
  NetworkGraph graph({8, 8, 3});
  const Value x = unit(input(graph), "a", 4);
  conv(x, "b", {.out = 4, .kernel = 1});
  relu(x);
  EXPECT_THAT(described(graph), ElementsAre("a gradient", "b <a", "Relu_4"));
}

TEST(FusionTest, a_norm_that_follows_no_convolution_is_a_layer_and_takes_what_follows) {
  NetworkGraph graph({8, 8, 3});
  Value x = conv(input(graph), "stem", {.out = 4, .kernel = 1});
  x = add(conv(relu(batch_norm(x, "bn")), "a", {.out = 4, .kernel = 1}), x);  // x has two readers
  relu(add(batch_norm(x, "bn2"), x));
  const std::vector<LayerSpec> layers = fuse(graph);
  EXPECT_THAT(described(graph), ElementsAre("stem", "bn deferred", "a <bn", "Add_5", "bn2"));
  EXPECT_EQ(layers[1].activation, Activation::relu);
  EXPECT_EQ(layers[1].norm, layers[1].main);
  EXPECT_TRUE(layers[4].adds);
  EXPECT_EQ(layers[4].activation, Activation::relu);
}

// It is computed once, in the pass of the norm, not by every reader of a pixel.
TEST(FusionTest, a_norm_takes_a_gelu_and_is_not_deferred_then) {
  NetworkGraph graph({8, 8, 3});
  Value x = gelu(unit(input(graph), "a", 4));
  x = gelu(unit(x, "b", 4));
  x = gelu(add(unit(x, "c", 4), x));  // after an addition
  gelu(conv(x, "d", {.out = 4, .kernel = 1, .has_bias = true}));
  EXPECT_THAT(described(graph), ElementsAre("a gradient", "b <a", "c", "Gelu_10", "d", "Gelu_12"));
  EXPECT_EQ(fuse(graph)[0].activation, Activation::gelu);
  EXPECT_EQ(fuse(graph, false)[0].activation, Activation::none);
  EXPECT_EQ(fuse(graph, false).size(), 8U);
}

TEST(FusionTest, an_activation_joins_only_layers_that_add_a_bias_or_normalize) {
  NetworkGraph graph({8, 8, 3});
  Value x = relu(conv(input(graph), "a", {.out = 4, .kernel = 1}));
  x = relu(conv(x, "b", {.out = 4, .kernel = 1, .has_bias = true}));
  x = relu(linear(flatten(tanh(concat({x, x}))), "c", 6, false));
  relu(linear(x, "d", 6));
  EXPECT_THAT(described(graph), ElementsAre("a", "Relu_2", "b", "Concat_5", "Tanh_6", "Flatten_7", "c", "Relu_9", "d"));
}

// Every node of every model is in exactly one layer, and each layer reads only values that are there.
TEST(FusionTest, layers_of_all_models_run_every_node_once) {
  for (const std::string& name : model_names()) {
    for (const std::int64_t side : {32, 224}) {
      const NetworkGraph graph = model_graph({name, {side, side, 3}, 10});
      std::set<std::size_t> known = {0};
      std::size_t nodes = 1;
      for (const LayerSpec& layer : fuse(graph)) {
        for (const std::size_t input : layer.inputs) EXPECT_TRUE(known.contains(input)) << name;
        EXPECT_TRUE(known.insert(layer.output).second) << name;
        const bool adds_norm = layer.norm && layer.norm != layer.main;  // otherwise the norm is the first node
        nodes += 1 + (adds_norm ? 1 : 0) + (layer.adds ? 1 : 0) + (layer.activation != Activation::none ? 1 : 0);
      }
      EXPECT_EQ(nodes, graph.nodes().size()) << name;
      EXPECT_TRUE(known.contains(graph.nodes().size() - 1)) << name;
    }
  }
}

}  // namespace lockstep::fusion_test
