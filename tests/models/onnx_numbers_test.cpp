// Networks from files of PyTorch's exporters against numbers that PyTorch wrote in float64 (tests/golden/make_onnx.py).
// LOCKSTEP_ONNX_NUMBERS names another folder than tests/golden/onnx.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "models/net_values.hpp"
#include "models/test_net.hpp"
#include "network/network_text.hpp"
#include "network/onnx/onnx_network.hpp"
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

constexpr std::int64_t samples = 4;

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

TEST_P(OnnxNumbersTest, logits_gradients_and_statistics_are_those_of_pytorch) {
  const auto& [device, name] = GetParam();
  const NamedValues golden = golden_numbers(folder() / (name.substr(0, name.find("_by_")) + ".txt"));
  ASSERT_EQ(golden.at("logits").size(), samples * 10U);
  const OnnxNetwork network = read_onnx_network(folder() / (name + ".onnx"), {});
  const std::int64_t side = network.graph.node(0).shape.height;
  ModelOptions options{name, {side, side, 3}, 10};
  options.network = network_text(network.graph);
  TestNet net(options, device.open({.threads = 2}));
  std::vector<ParameterStore::Entry> entries;
  for (const NamedArray& array : network.arrays) entries.push_back({array.name, array.dims, array.values});
  net.store.assign(entries);

  const Tensor images = golden_images(*net.device, side);
  EXPECT_LE(largest_error(doubles(read(*net.device, net.model->forward(images, Mode::evaluate))), golden.at("logits")),
            1e-4);
  RecordingSink sink;
  const Tensor logits = net.pass(images, make_labels(*net.device, std::vector<float>{0, 3, 6, 9}), sink);
  // Networks with many norms, or with norms of few values, multiply the rounding errors of fp32.
  const double tolerance = std::max(1e-3, 5 * golden.at("fp32_error")[0]);
  EXPECT_LE(largest_error(doubles(read(*net.device, logits)), golden.at("training_logits")), tolerance);
  const StepRecord record(*net.device, ParameterStore::metric_slot_count);
  net.store.update_running_statistics(record);

  NamedValues computed = gradients(net);
  double largest = 0;
  for (const auto& [parameter, values] : computed) largest = std::max(largest, golden.at(parameter)[0]);
  for (const ParameterStore::Entry& entry : net.store.entries()) {
    if (entry.name.find(".running_") != std::string::npos) computed[entry.name] = doubles(entry.values);
  }
  EXPECT_EQ(computed.size() + 3, golden.size());
  for (const auto& [parameter, values] : computed) {
    const Values expected = golden.at(parameter);
    const Values actual = projected(values);
    const double margin = tolerance * std::max(expected[0], 1e-2 * largest);  // that of a bias before a norm is 0
    EXPECT_NEAR(actual[0], expected[0], margin) << parameter;
    EXPECT_NEAR(actual[1], expected[1], margin) << parameter;
  }
}

INSTANTIATE_TEST_SUITE_P(, OnnxNumbersTest,
                         ::testing::Combine(::testing::ValuesIn(test_devices()), ::testing::ValuesIn(networks())),
                         [](const auto& test) {
                           return std::get<TestDevice>(test.param).name + "_" + std::get<std::string>(test.param);
                         });

}  // namespace
}  // namespace lockstep::test
