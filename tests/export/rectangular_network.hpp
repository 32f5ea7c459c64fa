// A network of convolutions whose rows and columns differ, which no model of the zoo has.
#pragma once

#include "models/model_zoo.hpp"
#include "network/build.hpp"
#include "network/network_text.hpp"

namespace lockstep {

inline ModelOptions rectangular_network() {
  using namespace build;
  NetworkGraph graph({16, 18, 3});
  Value x = conv(input(graph), "columns", {.out = 8, .kernel = {1, 7}, .padding = {0, 3}});
  x = relu(batch_norm(x, "bn"));
  x = conv(x, "rows", {.out = 8, .kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 0}, .has_bias = true});
  linear(global_mean_pool(x), "fc", 4);
  return {.name = "rectangular", .sample = {16, 18, 3}, .classes = 4, .network = network_text(graph)};
}

}  // namespace lockstep
