// Every model as ONNX: valid by ONNX's own checker, and answers as we do where an evaluator of its own runs it.
#include "export/onnx_model.hpp"

#include <gtest/gtest.h>
#include <onnx/checker.h>

#include <cmath>

#include "device/cpu/cpu_device.hpp"
#include "export/onnx_evaluator.hpp"
#include "export/own_network.hpp"
#include "models/counter_values.hpp"
#include "nn/initialize.hpp"
#include "step/model.hpp"

namespace lockstep::test::onnx_model_test {

constexpr std::int64_t pictures = 2;

// A model with weights and statistics that are not those that it begins with.
struct Trained {
  explicit Trained(const ModelOptions& options) : model(*device, options) {
    model.store.allocate(device->make_persistent(model.store.gradient_buffer_count(), DType::f32));
    initialize(model.store, 3);
    file = {options.name, {}, options.sample, {}, {}, model.store.entries()};
    std::uint64_t stream = 0;
    for (ParameterStore::Entry& entry : file.entries) {
      const bool is_variance = entry.name.ends_with("running_var");
      const bool is_other = entry.dims.size() == 1 && !entry.name.ends_with("weight");
      const std::vector<float> change = counter_uniform(stream++, static_cast<std::int64_t>(entry.values.size()));
      for (std::size_t i = 0; i < entry.values.size() && (is_variance || is_other); ++i) {
        entry.values[i] = is_variance ? 1 + 0.5F * change[i] : 0.3F * change[i];
      }
    }
    model.store.assign(file.entries);
    for (std::int64_t c = 0; c < options.classes; ++c) file.classes.push_back(std::to_string(c));
    for (std::int64_t c = 0; c < options.sample.channels; ++c) {
      file.mean.push_back(0.5F - 0.125F * static_cast<float>(c));
      file.deviation.push_back(0.25F + 0.125F * static_cast<float>(c));
    }
  }

  // Of pixels / 255, [n, c, h, w].
  std::vector<float> logits(const OnnxArray& images) {
    const std::int64_t channels = images.dims[1], plane = images.dims[2] * images.dims[3];
    std::vector<float> normalized;
    for (std::int64_t n = 0; n < images.dims[0]; ++n) {
      for (std::int64_t pixel = 0; pixel < plane; ++pixel) {
        for (std::int64_t c = 0; c < channels; ++c) {
          const float value = images.values[static_cast<std::size_t>((n * channels + c) * plane + pixel)];
          const auto channel = static_cast<std::size_t>(c);
          normalized.push_back((value - file.mean[channel]) / file.deviation[channel]);
        }
      }
    }
    const Tensor x =
        device->make({images.dims[0], images.dims[2], images.dims[3], channels}, device->image_dtype(), Layout::images);
    device->write(normalized, x);
    const Tensor y = model.network->forward(x, Mode::evaluate);
    std::vector<float> read(static_cast<std::size_t>(y.shape().count()));
    device->read(y, read);
    return read;
  }

  std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
  Model model;
  ModelFile file;
};

class OnnxModelTest : public ::testing::TestWithParam<ModelOptions> {};

TEST_P(OnnxModelTest, is_valid_and_answers_as_the_model_does) {
  Trained trained(GetParam());
  onnx::ModelProto file;
  ASSERT_TRUE(file.ParseFromString(onnx_model(model_graph(trained.model.options), trained.file)));
  EXPECT_NO_THROW(onnx::checker::check_model(file));

  const SampleShape& sample = GetParam().sample;
  OnnxArray images{{pictures, sample.channels, sample.height, sample.width}, {}};
  images.values = counter_uniform(99, pictures * sample.channels * sample.height * sample.width);
  for (float& value : images.values) value = (value + 1) / 2;

  const std::vector<float> expected = trained.logits(images);
  const OnnxArray logits = OnnxEvaluator(file.graph()).run(images);
  EXPECT_EQ(logits.dims, (std::vector<std::int64_t>{pictures, GetParam().classes}));
  ASSERT_EQ(logits.values.size(), expected.size());
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(logits.values[i], expected[i], 1e-4F * std::max(largest, 1.0F)) << i;
  }
}

TEST_P(OnnxModelTest, takes_batches_of_any_size_and_says_what_it_was_trained_on) {
  const Trained trained(GetParam());
  onnx::ModelProto file;
  ASSERT_TRUE(file.ParseFromString(onnx_model(model_graph(trained.model.options), trained.file)));
  const auto& input = file.graph().input(0).type().tensor_type().shape();
  EXPECT_EQ(file.graph().input_size(), 1);
  EXPECT_EQ(file.graph().input(0).name(), "images");
  EXPECT_EQ(file.graph().output(0).name(), "logits");
  EXPECT_EQ(input.dim(0).dim_param(), "batch");
  EXPECT_EQ(input.dim(1).dim_value(), GetParam().sample.channels);
  EXPECT_EQ(file.opset_import(0).version(), 13);
  std::map<std::string, std::string> notes;
  for (const auto& note : file.metadata_props()) notes[note.key()] = note.value();
  EXPECT_EQ(notes.at("model"), GetParam().name);
  EXPECT_EQ(notes.at("classes"), R"(["0","1","2","3"])");
  EXPECT_TRUE(notes.at("mean").starts_with("[0.5"));
  EXPECT_TRUE(notes.at("deviation").starts_with("[0.25"));
}

TEST(BlurredModelTest, blurs_before_strided_convolutions_of_at_least_sixteen_channels) {
  const auto blurs_in = [](const ModelOptions& options) {
    const Trained trained(options);
    onnx::ModelProto file;
    EXPECT_TRUE(file.ParseFromString(onnx_model(model_graph(trained.model.options), trained.file)));
    return std::ranges::count_if(file.graph().node(), [](const onnx::NodeProto& node) {
      return std::ranges::any_of(node.attribute(), [](const auto& attribute) { return attribute.name() == "group"; });
    });
  };
  EXPECT_EQ(blurs_in({"resnet20-blur", {16, 16, 3}, 4}), 2);     // of 16 and 32 channels; the shortcuts have none
  EXPECT_EQ(blurs_in({"resnet18-blur", {16, 16, 3}, 4, 8}), 4);  // those of 8 are left alone
  EXPECT_EQ(blurs_in({"resnet50-blur", {72, 72, 3}, 4, 8}), 6);  // the stem and its pool are
  EXPECT_EQ(blurs_in({"resnet50", {72, 72, 3}, 4, 8}), 0);
}

INSTANTIATE_TEST_SUITE_P(
    , OnnxModelTest,
    ::testing::Values(ModelOptions{"lenet", {32, 32, 3}, 4}, ModelOptions{"convnet", {28, 28, 1}, 4},
                      ModelOptions{"resnet20", {15, 16, 3}, 4}, ModelOptions{"resnet18", {16, 16, 3}, 4, 8},
                      ModelOptions{"resnet34", {72, 65, 3}, 4, 16}, ModelOptions{"resnet50", {72, 72, 3}, 4, 16},
                      ModelOptions{"resnet101", {16, 16, 3}, 4, 16}, ModelOptions{"resnet20-blur", {15, 16, 3}, 4},
                      ModelOptions{"resnet50-blur", {72, 65, 3}, 4, 4}, rectangular_network(), gelu_network()),
    [](const auto& one) {
      std::string name = one.param.name;
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace lockstep::test::onnx_model_test
