// What onnx_model() writes, read_onnx_network() reads back.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "device/cpu/cpu_device.hpp"
#include "export/onnx_model.hpp"
#include "export/own_network.hpp"
#include "network/network_text.hpp"
#include "network/onnx/onnx_network.hpp"
#include "nn/initialize.hpp"
#include "step/model.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::onnx_round_trip_test {

struct Exported {
  explicit Exported(const ModelOptions& options) : graph(model_graph(options)) {
    const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
    Model model(*device, options);
    model.store.allocate(device->make_persistent(model.store.gradient_buffer_count(), DType::f32));
    initialize(model.store, 5);
    file = {options.name, {}, options.sample, {}, {}, model.store.entries()};
    for (std::int64_t c = 0; c < options.classes; ++c) file.classes.push_back(std::to_string(c));
    for (std::int64_t c = 0; c < options.sample.channels; ++c) {
      file.mean.push_back(0.5F - 0.125F * static_cast<float>(c));
      file.deviation.push_back(0.25F + 0.125F * static_cast<float>(c));
    }
  }

  NetworkGraph graph;
  ModelFile file;
};

// Nodes without parameters are named after their number.
std::string text_without_names(const NetworkGraph& graph) {
  NetworkGraph other(graph.node(0).shape);
  for (std::size_t i = 1; i < graph.nodes().size(); ++i) {
    const GraphNode& node = graph.node(i);
    const bool has_parameters = node.as<op::Convolution>() || node.as<op::BatchNorm>() || node.as<op::Linear>();
    other.add(has_parameters ? node.name : "", node.operation, node.inputs);
  }
  return network_text(other);
}

class OnnxRoundTripTest : public testing::TestWithParam<ModelOptions> {};

TEST_P(OnnxRoundTripTest, keeps_the_network_its_weights_and_the_normalization) {
  const Exported exported(GetParam());
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "net.onnx";
  write_file_atomically(path, std::string_view(onnx_model(exported.graph, exported.file)));
  const OnnxNetwork network = read_onnx_network(path, {});
  EXPECT_EQ(text_without_names(network.graph), text_without_names(exported.graph));
  EXPECT_EQ(network.mean, exported.file.mean);
  EXPECT_EQ(network.deviation, exported.file.deviation);
  EXPECT_EQ(network.arrays.size(), exported.file.entries.size());
  for (const NamedArray& array : network.arrays) {
    const auto found = std::ranges::find(exported.file.entries, array.name, &ParameterStore::Entry::name);
    ASSERT_NE(found, exported.file.entries.end()) << array.name;
    EXPECT_EQ(array.dims, found->dims) << array.name;
    EXPECT_EQ(array.values, found->values) << array.name;
  }
}

std::vector<ModelOptions> all_models() {
  std::vector<ModelOptions> all = {{"convnet", {28, 28, 1}, 10},
                                   {"lenet", {32, 32, 3}, 10},
                                   {"resnet18-blur", {64, 64, 3}, 4},
                                   {"resnet20", {32, 32, 3}, 10},
                                   rectangular_network(),
                                   own_network(),
                                   gelu_network()};
  for (const char* name : {"resnet18", "resnet50"}) {
    all.push_back({name, {32, 32, 3}, 7, 8});
    all.push_back({name, {96, 96, 3}, 7, 8});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, OnnxRoundTripTest, testing::ValuesIn(all_models()), [](const auto& one) {
  std::string name = one.param.name + "_" + std::to_string(one.param.sample.height);
  std::ranges::replace(name, '-', '_');
  return name;
});

// `whole`: the bytes of a file; `beside`: its arrays, if they are in another file.
void expect_damage_is_told(const std::string& whole, const std::filesystem::path& beside = {}) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "net.onnx";
  if (!beside.empty()) std::filesystem::copy(beside, folder.path());
  for (std::uint64_t round = 0; round < mutation_rounds(500); ++round) {
    write_file_atomically(path, std::string_view(mutated(whole, round)));
    try {
      const std::string text = network_text(read_onnx_network(path, {}).graph);
      EXPECT_EQ(network_text(network_from_text(text)), text);
    } catch (const Error& error) {
      EXPECT_TRUE(error.failure() == Failure::bad_data || error.failure() == Failure::usage) << error.what();
    }
  }
}

TEST(DamagedOnnxTest, is_refused_or_another_network) {
  const Exported exported(own_network());
  expect_damage_is_told(onnx_model(exported.graph, exported.file));
  const std::filesystem::path golden = std::filesystem::path(LOCKSTEP_GOLDEN_DIR) / "onnx" / "operators_by_dynamo.onnx";
  expect_damage_is_told(read_file(golden, 1 << 20), golden.string() + ".data");
}

}  // namespace lockstep::onnx_round_trip_test
