// Models of tests by name: those of the table, and "dropout", a small network with dropout of maps and rows.
#pragma once

#include <string>

#include "models/model_zoo.hpp"
#include "network/build.hpp"
#include "network/network_text.hpp"

namespace lockstep {

inline ModelOptions named_model(const std::string& name, const SampleShape& sample) {
  constexpr std::int64_t classes = 10;
  if (name != "dropout") return {name, sample, classes};
  using namespace build;
  NetworkGraph graph({sample.height, sample.width, sample.channels});
  Value x = relu(batch_norm(conv(input(graph), "conv", {.out = 12, .kernel = 3, .padding = 1}), "bn"));
  x = global_mean_pool(dropout(conv(x, "conv2", {.out = 20, .kernel = 3, .stride = 2, .padding = 1}), 0.25F));
  linear(dropout(relu(linear(x, "fc1", 33)), 0.5F), "fc2", classes);
  return {.name = "dropout.onnx", .sample = sample, .classes = classes, .network = network_text(graph)};
}

}  // namespace lockstep
