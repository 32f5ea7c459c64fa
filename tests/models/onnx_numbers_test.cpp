// Networks from files of PyTorch's exporters against numbers that PyTorch wrote in float64 (tests/golden/make_onnx.py).
// LOCKSTEP_ONNX_NUMBERS names another folder than tests/golden/onnx.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "models/counter_weights.hpp"
#include "models/net_values.hpp"
#include "models/test_net.hpp"
#include "network/network_text.hpp"
#include "network/onnx/onnx_network.hpp"
#include "optim/optimizer.hpp"
#include "support/device/devices.hpp"

namespace lockstep::test {
namespace {

// Lines "name value value ...".
NamedValues golden_numbers(const std::filesystem::path& path) {
  std::ifstream file(path);
  NamedValues numbers;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (double value = 0; words >> value;) numbers[name].push_back(value);
  }
  return numbers;
}

// The L2 norm, and a sum with fixed factors.
Values projected(const Values& values) {
  double square = 0;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    square += values[i] * values[i];
    sum += values[i] * (static_cast<double>(i * 37 % 101) - 50) / 50;
  }
  return {std::sqrt(square), sum};
}

std::filesystem::path folder() {
  const char* const other = std::getenv("LOCKSTEP_ONNX_NUMBERS");
  return other != nullptr ? other : std::filesystem::path(LOCKSTEP_GOLDEN_DIR) / "onnx";
}

// Without the ending.
std::vector<std::string> networks() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder())) {
    if (file.path().extension() == ".onnx") names.push_back(file.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

// As in make_onnx.py.
constexpr std::int64_t samples = 4;
constexpr int steps = 5;
constexpr float learning_rate = 0.05F;
constexpr float momentum = 0.9F;

Tensor golden_images(Device& device, std::int64_t side) {
  std::vector<float> images(static_cast<std::size_t>(samples * side * side * 3));
  const auto pixels = static_cast<std::size_t>(side * side);
  for (std::size_t i = 0; i < images.size(); ++i) {  // of PyTorch's order: sample, channel, pixel
    const std::size_t channel = i / pixels % 3;
    images[(i / pixels / 3 * pixels + i % pixels) * 3 + channel] = (static_cast<float>(i * 37 % 101) - 50) / 50;
  }
  return make_images(device, {samples, side, side, 3}, images);
}

using Case = std::tuple<TestDevice, std::string>;
class OnnxNumbersTest : public ::testing::TestWithParam<Case> {};

// Norms and projections of tensors, by name. A small tensor may have the error of larger ones: the gradient of a bias
// before a norm is 0.
void expect_projected(const NamedValues& tensors, const NamedValues& golden, const std::string& prefix,
                      double tolerance) {
  double largest = 0;
  for (const auto& [name, values] : tensors) largest = std::max(largest, golden.at(prefix + name)[0]);
  for (const auto& [name, values] : tensors) {
    const Values& expected = golden.at(prefix + name);
    const Values actual = projected(values);
    const double margin = tolerance * std::max(expected[0], 1e-2 * largest);
    EXPECT_NEAR(actual[0], expected[0], margin) << prefix << name;
    EXPECT_NEAR(actual[1], expected[1], margin) << prefix << name;
  }
}

struct State {
  NamedValues parameters;
  NamedValues statistics;
};

State state(const TestNet& net) {
  State state;
  for (const ParameterStore::Entry& entry : net.store.entries()) {
    (is_statistic(entry) ? state.statistics : state.parameters)[entry.name] = doubles(entry.values);
  }
  return state;
}

NamedValues change(const NamedValues& before, const NamedValues& after) {
  NamedValues change = after;
  for (auto& [name, values] : change) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= before.at(name)[i];
  }
  return change;
}

TEST_P(OnnxNumbersTest, a_training_has_the_numbers_of_pytorch) {
  const auto& [device, name] = GetParam();
  const NamedValues golden = golden_numbers(folder() / (name.substr(0, name.find("_by_")) + ".txt"));
  const auto classes = static_cast<std::int64_t>(golden.at("logits").size()) / samples;
  const OnnxNetwork network = read_onnx_network(folder() / (name + ".onnx"), {});
  const std::int64_t side = network.graph.node(0).shape.height;
  ModelOptions options{name, {side, side, 3}, classes};
  options.network = network_text(network.graph);
  TestNet net(options, device.open({.threads = 2}));
  std::vector<ParameterStore::Entry> entries;
  for (const NamedArray& array : network.arrays) entries.push_back({array.name, array.dims, array.values});
  net.store.assign(entries);
  const State before = state(net);

  const Tensor images = golden_images(*net.device, side);
  std::vector<float> classes_of_images;
  for (std::int64_t i = 0; i < samples; ++i) classes_of_images.push_back(static_cast<float>(3 * i % classes));
  const Tensor labels = make_labels(*net.device, classes_of_images);
  EXPECT_LE(largest_error(doubles(read(*net.device, net.model->forward(images, Mode::evaluate))), golden.at("logits")),
            1e-4);
  RecordingSink sink;
  const Tensor logits = net.pass(images, labels, sink);
  // Networks with many norms, or with norms of few values, multiply the rounding errors of fp32.
  const double tolerance = std::max(1e-3, 5 * golden.at("fp32_error")[0]);
  EXPECT_LE(largest_error(doubles(read(*net.device, logits)), golden.at("training_logits")), tolerance);
  EXPECT_NEAR(net.loss(), golden.at("loss")[0], tolerance * golden.at("loss")[0]);
  expect_projected(gradients(net), golden, "", tolerance);

  const std::unique_ptr<Optimizer> sgd = make_optimizer(net.store, {.momentum = momentum, .weight_decay = 0});
  const StepRecord record(*net.device, ParameterStore::metric_slot_count);
  net.device->write(std::vector<float>{learning_rate}, record.at(step_learning_rate));
  for (int step = 0; step < steps; ++step) {
    if (step > 0) net.pass(images, labels, sink);
    sgd->step(record);
    net.store.update_running_statistics(record);
  }
  const State after = state(net);
  const double later_tolerance = std::max(1e-3, 5 * golden.at("fp32_change_error")[0]);
  expect_projected(change(before.parameters, after.parameters), golden, "change.", later_tolerance);
  expect_projected(after.statistics, golden, "", later_tolerance);
  EXPECT_EQ(golden.size(), 5 + 2 * after.parameters.size() + after.statistics.size());
}

INSTANTIATE_TEST_SUITE_P(, OnnxNumbersTest,
                         ::testing::Combine(::testing::ValuesIn(test_devices()), ::testing::ValuesIn(networks())),
                         [](const auto& test) {
                           return std::get<TestDevice>(test.param).name + "_" + std::get<std::string>(test.param);
                         });

}  // namespace
}  // namespace lockstep::test
