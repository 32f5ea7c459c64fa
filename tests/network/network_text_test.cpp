#include "network/network_text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "models/model_zoo.hpp"
#include "network/build.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"

namespace lockstep::network_text_test {

TEST(NetworkTextTest, every_model_comes_back_from_its_text) {
  for (const std::string& name : model_names()) {
    for (const std::int64_t side : {32, 96}) {
      const NetworkGraph graph = model_graph({name, {side, side, 3}, 10});
      const std::string text = network_text(graph);
      const NetworkGraph other = network_from_text(text);
      EXPECT_EQ(network_text(other), text) << name;
      EXPECT_EQ(other.nodes().size(), graph.nodes().size());
      EXPECT_EQ(other.nodes().back().shape, graph.nodes().back().shape);
    }
  }
  EXPECT_NO_THROW(network_from_text(network_text(model_graph({"resnet18-blur", {64, 64, 3}, 10}))));
}

TEST(NetworkTextTest, has_the_form_that_the_header_shows) {
  using namespace build;
  NetworkGraph graph({32, 32, 3});
  relu(conv(input(graph), "conv1", {.out = 64, .kernel = 3, .padding = 1}));
  EXPECT_EQ(network_text(graph),
            R"({"input":[32,32,3],"nodes":[["Conv","conv1",[0],[3,64,3,1,1,0]],["Relu","Relu_2",[1],[]]]})");
}

TEST(NetworkTextTest, keeps_all_operations_and_their_numbers) {
  using namespace build;
  NetworkGraph graph({32, 32, 3});
  Value x = batch_norm(conv(input(graph), "a", {.out = 8, .kernel = 3}), "bn", {.epsilon = 0.001F});
  x = concat({clip(x, 0, 6), leaky_relu(x, 0.1F), sigmoid(x), tanh(x), gelu(x), add(x, x)});
  x = dropout(shift(scale(x, {0.5F}), std::vector<float>(48, 1.5F)), 0.25F);
  x = max_pool(average_pool(x, {.kernel = 3, .stride = 2, .padding = 1}, true),
               {.kernel = 2, .stride = 2, .ceil = true});
  x = flatten(unflatten(global_mean_pool(blur(subsample(x, 2, 48), 2))));
  linear(x, "fc", 10, false);
  const std::string text = network_text(graph);
  EXPECT_NE(text.find(R"(["BatchNormalization","bn",[1],[0.001)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("fc",[19],[48,10,0]])"), std::string::npos) << text;
  const NetworkGraph other = network_from_text(text);
  EXPECT_EQ(network_text(other), text);
  EXPECT_EQ(other.node(2).as<op::BatchNorm>()->epsilon, 0.001F);
  EXPECT_EQ(other.nodes().back().shape, graph.nodes().back().shape);
}

TEST(NetworkTextTest, a_convolution_has_both_dimensions_only_where_they_differ) {
  using namespace build;
  NetworkGraph graph({32, 32, 3});
  const Value x = conv(input(graph), "a", {.out = 8, .kernel = {1, 7}, .padding = {0, 3}});
  linear(global_mean_pool(conv(x, "b", {.out = 4, .kernel = {7, 3}, .stride = {2, 1}, .padding = 1})), "fc", 10);
  const std::string text = network_text(graph);
  EXPECT_NE(text.find(R"(["Conv","a",[0],[3,8,[1,7],1,[0,3],0]])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(["Conv","b",[1],[8,4,[7,3],[2,1],1,0]])"), std::string::npos) << text;
  const NetworkGraph other = network_from_text(text);
  EXPECT_EQ(network_text(other), text);
  EXPECT_EQ(other.node(2).as<op::Convolution>()->conv, graph.node(2).as<op::Convolution>()->conv);
  EXPECT_EQ(other.node(2).shape, graph.node(2).shape);
}

TEST(NetworkTextTest, text_that_is_no_network_is_refused) {
  const auto refused = [](const char* text, std::initializer_list<std::string_view> subjects) {
    expect_error(Failure::bad_data, subjects, [&] { network_from_text(text); });
  };
  refused("{", {"JSON"});
  refused("[]", {"form"});
  refused(R"({"input":[8,8,3],"nodes":[]})", {"form"});
  refused(R"({"input":[8,8,3],"nodes":[3]})", {"form"});
  refused(R"({"input":[8,8,4],"nodes":[["Relu","a",[0],[]]]})", {"'input'"});
  refused(R"({"input":[8,8],"nodes":[["Relu","a",[0],[]]]})", {"'input'"});
  refused(R"({"input":[8,8,3],"nodes":[["Relu","a",[1],[]]]})", {"'a'", "reads"});
  refused(R"({"input":[8,8,3],"nodes":[["Relu","a",[-1],[]]]})", {"'a'", "reads"});
  refused(R"({"input":[8,8,3],"nodes":[["Add","a",[0],[]]]})", {"'a'", "reads"});
  refused(R"({"input":[8,8,3],"nodes":[["Relu","a",[0],[]],["Relu","a",[1],[]]]})", {"two nodes", "'a'"});
  refused(R"({"input":[8,8,3],"nodes":[["Relu","a\u001b",[0],[]]]})", {"invalid name"});
  refused(R"({"input":[8,8,3],"nodes":[["Softmax","a",[0],[]]]})", {"'a'", "unknown"});
  refused(R"({"input":[8,8,3],"nodes":[["LeakyRelu","a",[0],[-1]]]})", {"'a'", "numbers"});
  refused(R"({"input":[8,8,3],"nodes":[["Clip","a",[0],[1,1]]]})", {"'a'", "numbers"});
  refused(R"({"input":[8,8,3],"nodes":[["Clip","a",[0],[0,1e99]]]})", {"'a'", "numbers"});
  refused(R"({"input":[8,8,3],"nodes":[["Clip","a",[0],[3.4028234663852886e38,3.4028234663852886e38]]]})",
          {"'a'", "numbers"});
  refused(
      R"({"input":[8,8,3],"nodes":[["Conv","a",[0],[3,2147483648,1,1,0,0]],["Conv","b",[1],[2147483648,2147483648,1,1,0,0]]]})",
      {"'b'", "numbers"});
  for (const char* numbers : {"[]", "[1e39]", R"(["1"])"}) {
    for (const char* kind : {"Mul", "Shift", "Dropout"}) {
      refused(fmt::format(R"({{"input":[8,8,3],"nodes":[["{}","a",[0],{}]]}})", kind, numbers).c_str(),
              {"'a'", "numbers"});
    }
  }
  refused(R"({"input":[8,8,3],"nodes":[["Dropout","a",[0],[1]]]})", {"'a'", "numbers"});
  refused(R"({"input":[8,8,3],"nodes":[["Mul","a",[0],[1,2]]]})", {"'a'", "shape"});
  refused(R"({"input":[8,8,3],"nodes":[["Unflatten","a",[0],[]]]})", {"'a'", "shape"});
  refused(R"({"input":[8,8,3],"nodes":[["Subsample","a",[0],[1,2]]]})", {"'a'", "shape"});
  refused(R"({"input":[8,8,3],"nodes":[["Subsample","a",[0],[1,1000000000]],["Flatten","b",[1],[]]]})",
          {"'b'", "shape"});
  refused(R"({"input":[8,8,3],"nodes":[["Relu","a",[0],[]]]})", {"'a'", "map"});
  refused(R"({"input":[8,8,3],"nodes":[["Relu","a",[0],[]],["Flatten","b",[0],[]]]})", {"nothing reads"});
  refused(R"({"input":[8,8,3],"nodes":[["BatchNormalization","a",[0],[0]]]})", {"'a'", "numbers"});
  refused(R"({"input":[8,8,3],"nodes":[["Concat","a",[],[]]]})", {"'a'", "reads"});
  refused(R"({"input":[8,8,3],"nodes":[["MaxPool","a",[0],[2,2,0,2]]]})", {"'a'", "numbers"});
  refused(R"({"input":[8,8,3],"nodes":[["Conv","a",[0],[3,64,3,0,1,0]]]})", {"'a'", "numbers"});
  refused(R"({"input":[8,8,3],"nodes":[["Conv","a",[0],[3,64,3,1,1]]]})", {"'a'", "numbers"});
  refused(R"({"input":[8,8,3],"nodes":[["Conv","a",[0],[4,64,3,1,1,0]]]})", {"'a'", "shape"});
  refused(R"({"input":[8,8,3],"nodes":[["Conv","a",[0],[3,64,[9,1],1,0,0]]]})", {"'a'", "shape"});
  for (const char* sizes : {"[3],1,0", "[],1,0", "[3,3,3],1,0", "[0,3],1,0", "[3,65537],1,0", "[3,\"3\"],1,0",
                            "[[3,3],3],1,0", "{\"a\":3},1,0", "3,[1,0],0", "3,[0,1],0", "3,[1,-1],0", "3,1,[3,0]",
                            "3,1,[0,3]", "[1,7],1,[1,0]", "[1,7],1,1", "[7,1],1,[0,1]", "3,1,[0,-1]", "3,1,[0,1.5]"}) {
    const std::string text = fmt::format(R"({{"input":[8,8,3],"nodes":[["Conv","a",[0],[3,64,{},0]]]}})", sizes);
    EXPECT_EQ(message_of(Failure::bad_data, [&] { network_from_text(text); }),
              "the description of its network is damaged: node 'a' has impossible numbers.")
        << text;
  }
}

// Nothing but a network or an Error comes of it.
void expect_no_damage_passes(const std::string& whole) {
  for (std::uint64_t round = 0; round < mutation_rounds(2000); ++round) {
    try {
      network_from_text(mutated(whole, round));
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data);
    }
  }
}

TEST(NetworkTextTest, damaged_text_is_refused_or_is_another_network) {
  using namespace build;
  NetworkGraph graph({8, 8, 3});
  Value x = conv(input(graph), "a", {.out = 8, .kernel = {1, 3}, .stride = {2, 1}, .padding = {0, 1}});
  x = concat({clip(x, 0, 6), leaky_relu(x, 0.1F), average_pool(x, {.kernel = 1, .stride = 1})});
  x = dropout(shift(scale(x, {2}), std::vector<float>(24, 0.5F)), 0.25F);
  linear(flatten(unflatten(global_mean_pool(x))), "fc", 10, false);
  for (const std::string& whole : {network_text(model_graph({"resnet20", {32, 32, 3}, 10})), network_text(graph)}) {
    expect_no_damage_passes(whole);
  }
}

}  // namespace lockstep::network_text_test
