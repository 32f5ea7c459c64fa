// Drawings of networks: arcs that overlap have lanes of their own, every edge is drawn once, names are no markup.
#include "report/network_drawing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model_zoo.hpp"
#include "network/build.hpp"
#include "network/fusion.hpp"

namespace lockstep::network_drawing_test {

using testing::HasSubstr;
using testing::Not;

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Convolutions, sums and joined channels that read random earlier maps.
NetworkGraph random_network(unsigned seed) {
  std::mt19937 draw(seed);
  NetworkGraph graph({8, 8, 3});
  std::vector<build::Value> maps = {build::conv(build::input(graph), "stem", {.out = 4, .kernel = 1})};
  const auto any = [&] { return maps[draw() % maps.size()]; };
  for (int i = 0; i < 40; ++i) {
    switch (draw() % 4) {
      case 0:
        maps.push_back(build::add(maps.back(), any()));
        break;
      case 1:
        maps.push_back(build::conv(build::concat({any(), any(), maps.back()}), "join" + std::to_string(i),
                                   {.out = 4, .kernel = 1}));
        break;
      default:
        maps.push_back(
            build::relu(build::batch_norm(build::conv(maps.back(), "conv" + std::to_string(i), {.out = 4, .kernel = 1}),
                                          "norm" + std::to_string(i))));
    }
  }
  build::linear(build::global_mean_pool(maps.back()), "fc", 10);
  return graph;
}

std::vector<NetworkGraph> networks() {
  std::vector<NetworkGraph> all = {model_graph({"lenet", {32, 32, 3}, 10}), model_graph({"resnet20", {32, 32, 3}, 10}),
                                   model_graph({"resnet50", {224, 224, 3}, 1000}),
                                   model_graph({"resnet18-blur", {64, 64, 3}, 10})};
  for (unsigned seed = 0; seed < 20; ++seed) all.push_back(random_network(seed));
  return all;
}

TEST(NetworkDrawingTest, arcs_that_overlap_never_share_a_lane) {
  std::mt19937 draw(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<ArcRows> arcs;
    for (int i = 0; i < 60; ++i) {
      const std::size_t first = draw() % 100;
      arcs.push_back({first, first + 2 + draw() % 30});
    }
    const std::vector<std::size_t> lanes = arc_lanes(arcs);
    ASSERT_EQ(lanes.size(), arcs.size());
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool overlap = std::max(arcs[i].first, arcs[j].first) < std::min(arcs[i].last, arcs[j].last);
        EXPECT_FALSE(overlap && lanes[i] == lanes[j]) << i << " and " << j;
      }
    }
  }
  EXPECT_THAT(arc_lanes({}), testing::IsEmpty());
  EXPECT_THAT(arc_lanes(std::vector<ArcRows>{{0, 8}, {1, 3}, {3, 5}, {4, 6}}), testing::ElementsAre(2, 0, 0, 1));
}

TEST(NetworkDrawingTest, every_edge_is_drawn_once_and_the_arcs_of_a_value_share_its_lane) {
  for (const NetworkGraph& graph : networks()) {
    // Two nodes that one layer runs are one row, so the rows of nodes follow from the layers' outputs alone.
    const std::vector<LayerSpec> layers = fuse(graph);
    std::set<std::pair<std::size_t, std::size_t>> expected;
    for (std::size_t reader = 0; reader < layers.size(); ++reader) {
      for (const std::size_t input : layers[reader].inputs) {
        const auto from = std::ranges::find(layers, input, &LayerSpec::output);
        expected.emplace(input == 0 ? 0 : from - layers.begin() + 1, reader + 1);
      }
    }
    const NetworkLayout layout = layout_of(graph);
    EXPECT_EQ(layout.rows.size(), layers.size() + 1);
    EXPECT_EQ(layout.edges.size(), expected.size());
    for (const DrawnEdge& edge : layout.edges) {
      EXPECT_EQ(expected.erase({edge.from, edge.to}), 1U) << edge.from << " to " << edge.to;
      EXPECT_EQ(edge.lane.has_value(), edge.to > edge.from + 1);
      for (const DrawnEdge& other : layout.edges) {
        if (!edge.lane || !other.lane) continue;
        if (edge.from == other.from) {
          EXPECT_EQ(edge.lane, other.lane);
        } else if (std::max(edge.from, other.from) < std::min(edge.to, other.to)) {
          EXPECT_NE(edge.lane, other.lane) << edge.from << " and " << other.from;
        }
      }
    }
    const std::string html = network_html(graph);
    EXPECT_EQ(count_of("<path class=\"edge\"", html), layout.edges.size());
    EXPECT_EQ(count_of("<rect class=\"box\"", html), layout.rows.size());
  }
}

// Read from the paths themselves.
TEST(NetworkDrawingTest, drawn_arcs_cover_no_part_of_a_lane_twice) {
  constexpr std::string_view start = R"(class="edge" d=")";
  for (const NetworkGraph& graph : networks()) {
    const std::string html = network_html(graph);
    std::map<double, std::vector<std::pair<double, double>>> verticals;  // by column
    for (std::size_t at = html.find(start); at != std::string::npos; at = html.find(start, at + 1)) {
      const char* const path = html.c_str() + at + start.size();
      double x = 0;
      double y = 0;
      double turn = 0;
      double radius = 0;
      double end = 0;
      if (std::sscanf(path, "M%lf %lfH%lfq%lf 0 %*f %*fV%lf", &x, &y, &turn, &radius, &end) == 5) {
        verticals[turn + radius].emplace_back(y + radius, end);
      } else {
        ASSERT_EQ(std::sscanf(path, "M%lf %lfV%lf", &x, &y, &end), 3) << std::string(path, 60);
        verticals[x].emplace_back(y, end);
      }
    }
    for (auto& [x, pieces] : verticals) {
      std::ranges::sort(pieces);
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        EXPECT_LT(pieces[i].first, pieces[i].second) << x;
        EXPECT_LE(i == 0 ? 0 : pieces[i - 1].second, pieces[i].first) << x;
      }
    }
  }
}

TEST(NetworkDrawingTest, a_box_has_the_operations_shape_and_costs_of_its_layer) {
  const std::string html = network_html(model_graph({"resnet20", {32, 32, 3}, 10}));
  EXPECT_THAT(html, HasSubstr("Parameters: 269,722. Multiply-adds for an image of 32 x 32 x 3: 40.6 million."));
  EXPECT_THAT(html, HasSubstr("<title>layer2.0.conv1: conv 3x3/2 + norm + relu\noutput: 16 x 16 x 32\n"
                              "parameters: 4,672\nmultiply-adds: 1.2 million</title>"));
  EXPECT_THAT(html, HasSubstr(">conv 3x3 + norm + add + relu</text>"));
  EXPECT_THAT(html, Not(HasSubstr("<details>")));
}

TEST(NetworkDrawingTest, a_long_drawing_is_folded_and_a_huge_network_is_not_drawn) {
  EXPECT_THAT(network_html(model_graph({"resnet50", {224, 224, 3}, 1000})),
              testing::AllOf(HasSubstr("<details><summary>56 layers</summary>"), HasSubstr("4.09 billion")));
  NetworkGraph many({8, 8, 3});
  build::Value x = build::conv(build::input(many), "stem", {.out = 3, .kernel = 1});
  for (std::size_t i = 0; i < most_drawn_nodes; ++i) x = build::sigmoid(x);
  EXPECT_THAT(network_html(many), testing::AllOf(HasSubstr("2001 operations"), Not(HasSubstr("<svg"))));
  NetworkGraph dense({8, 8, 3});
  std::vector<build::Value> maps = {build::conv(build::input(dense), "stem", {.out = 3, .kernel = 1})};
  for (int i = 0; i < 100; ++i) {
    maps.push_back(build::conv(build::concat(maps), std::to_string(i), {.out = 3, .kernel = 1}));
  }
  EXPECT_THAT(network_html(dense), testing::AllOf(HasSubstr("201 operations"), Not(HasSubstr("<svg"))));
}

TEST(NetworkDrawingTest, names_are_escaped) {
  NetworkGraph graph({8, 8, 3});
  const std::string bad = "</title><img src=x onerror=alert(1)>\"'&\n";
  build::linear(build::global_mean_pool(build::conv(build::input(graph), bad, {.out = 3, .kernel = 1})),
                std::string(200, '<'), 10);
  const std::string html = network_html(graph);
  EXPECT_THAT(html, HasSubstr("&lt;img"));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("\"'&")));
  EXPECT_EQ(count_of("<title>", html), count_of("</title>", html));
}

}  // namespace lockstep::network_drawing_test
