// Networks of what no model of the zoo has.
#pragma once

#include <vector>

#include "models/model_zoo.hpp"
#include "network/build.hpp"
#include "network/network_text.hpp"

namespace lockstep {

// Convolutions whose rows and columns differ.
inline ModelOptions rectangular_network() {
  using namespace build;
  NetworkGraph graph({16, 18, 3});
  Value x = conv(input(graph), "columns", {.out = 8, .kernel = {1, 7}, .padding = {0, 3}});
  x = relu(batch_norm(x, "bn"));
  x = conv(x, "rows", {.out = 8, .kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 0}, .has_bias = true});
  linear(global_mean_pool(x), "fc", 4);
  return {.name = "rectangular", .sample = {16, 18, 3}, .classes = 4, .network = network_text(graph)};
}

// GELUs of maps and of rows: several nodes of ONNX each.
inline ModelOptions gelu_network() {
  using namespace build;
  NetworkGraph graph({16, 18, 3});
  Value x = gelu(conv(input(graph), "conv", {.out = 8, .kernel = 3, .has_bias = true}));
  x = add(gelu(x), x);
  linear(gelu(linear(global_mean_pool(x), "hidden", 6)), "fc", 4);
  return {.name = "gelu", .sample = {16, 18, 3}, .classes = 4, .network = network_text(graph)};
}

// All other operations.
inline ModelOptions own_network() {
  using namespace build;
  NetworkGraph graph({16, 18, 3});
  Value x = relu(batch_norm(conv(input(graph), "conv", {.out = 2, .kernel = 3, .stride = 2}), "bn"));
  x = concat({clip(x, -1, 0.5F), leaky_relu(x, 0.1F), sigmoid(x), tanh(x)});
  x = average_pool(max_pool(x, {.kernel = 3, .stride = 2, .ceil = true}), {.kernel = 2, .stride = 1, .padding = 1},
                   true);
  x = gelu(shift(scale(x, {1, 2, 3, 4, 5, 6, 7, 8}), {8, 7, 6, 5, 4, 3, 2, 1}));
  x = linear(global_mean_pool(dropout(shift(scale(x, {-0.5F}), {0.25F}), 0.125F)), "hidden", 6, false);
  x = dropout(relu(flatten(batch_norm(unflatten(x), "bn_of_rows"))), 0.5F);
  linear(scale(x, {2}), "fc", 4);
  return {.name = "own", .sample = {16, 18, 3}, .classes = 4, .network = network_text(graph)};
}

}  // namespace lockstep
