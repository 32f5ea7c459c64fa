// Each layer alone, forward and backward, on every device and in every precision: against the CPU in fp32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "device/cpu/cpu_device.hpp"
#include "models/net_values.hpp"
#include "nn/conv_norm_act.hpp"
#include "nn/flatten.hpp"
#include "nn/linear.hpp"
#include "nn/pooling.hpp"
#include "nn/residual.hpp"
#include "nn/sequential.hpp"
#include "support/device/devices.hpp"

namespace lockstep::testing {
namespace {

// Between -1 and 1 in steps of 1/64, which half precision holds exactly, so that all devices read the same.
std::vector<float> exact_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::round(uniform(philox(seed, 0, i)[0]) * 128 - 64) / 64;
  }
  return values;
}

struct LayerCase {
  std::string name;
  Shape x;
  Layout layout;
  std::function<std::unique_ptr<Layer>(const LayerContext&)> make;

  friend void PrintTo(const LayerCase& layer, std::ostream* stream) { *stream << layer.name; }
};

class OneLayer {
 public:
  OneLayer(std::shared_ptr<Device> device, const LayerCase& layer)
      : device_(std::move(device)), store_(*device_), layer_(layer.make({*device_, store_, statistics_})) {
    store_.allocate(device_->make_persistent(store_.gradient_buffer_count(), DType::f32));
    std::uint64_t seed = 1;
    for (const Parameter& parameter : store_.parameters()) {
      std::vector<float> values = exact_values(parameter.count(), ++seed);
      const bool is_scale = parameter.role == ParameterRole::norm_scale;
      for (float& value : values) value = value / 2 + (is_scale ? 1.0F : 0.0F);
      device_->store(parameter.kind, parameter.dims, values, parameter.value);
    }
    x_ = layer.layout == Layout::images ? device_->make(layer.x, device_->image_dtype(), layer.layout)
                                        : device_->make(layer.x, dtype_of(layer.layout), layer.layout);
    device_->write(exact_values(layer.x.count(), 1), x_);
  }

  std::vector<float> forward() {
    y_ = layer_->forward(x_, Mode::train);
    return read(*device_, y_);
  }

  // Every gradient, and what forward told of the batch.
  NamedValues backward(const std::vector<float>& dy_values) {
    const Tensor dy = device_->make(y_.shape(), y_.dtype(), y_.layout());
    device_->write(dy_values, dy);
    RecordingSink sink;
    NamedValues found;
    if (const Tensor dx = layer_->backward(dy, sink)) found["dx"] = doubles(read(*device_, dx));
    for (const Parameter& parameter : store_.parameters()) {
      std::vector<float> gradient(static_cast<std::size_t>(parameter.count()));
      device_->load(parameter.kind, parameter.dims, parameter.gradient, gradient);
      found[parameter.name] = doubles(gradient);
    }
    for (const Statistic& statistic : store_.statistics()) {
      found[statistic.name] = doubles(read(*device_, statistic.batch.slice(0, statistic.channels)));
    }
    return found;
  }

  // With the statistics of the batch as the running ones, what training gave.
  std::vector<float> evaluate() {
    for (const Statistic& statistic : store_.statistics()) {
      device_->write(read(*device_, statistic.batch), statistic.running);
    }
    return read(*device_, layer_->forward(x_, Mode::evaluate));
  }

 private:
  DType dtype_of(Layout layout) const { return layout == Layout::plain ? DType::f32 : device_->precision(); }

  std::shared_ptr<Device> device_;
  StatisticsShare statistics_;
  ParameterStore store_;
  std::unique_ptr<Layer> layer_;
  Tensor x_;
  Tensor y_;
};

LayerCase convolution(const std::string& name, const Shape& x, const Conv2d& conv, const ConvolutionOptions& options,
                      Layout layout = Layout::features) {
  return {name, x, layout,
          [=](const LayerContext& context) { return std::make_unique<Convolution>(context, "conv", conv, options); }};
}

std::unique_ptr<ConvNormAct> unit(const LayerContext& context, const Conv2d& conv, Activation activation) {
  return std::make_unique<ConvNormAct>(context, "conv", "norm", conv, ConvolutionOptions{}, activation);
}

// A unit as the last one of a residual block is called; what it adds is its input.
class BehindResidual final : public Layer {
 public:
  explicit BehindResidual(const LayerContext& context)
      : device_(context.device), unit_(unit(context, {32, 32, 3, 1, 1}, Activation::relu)) {}

  Shape output_shape(const Shape& x) const override { return x; }
  Tensor forward(const Tensor& x, Mode mode) override { return unit_->pass_on({{x}}, x, Reads::maps, mode).map.x; }
  Tensor backward(const Tensor& dy, GradientSink& sink) override {
    Tensor dx = unit_->backward_with_residual(dy, sink);
    device_.ops().add(dy, dx);
    return dx;
  }
  GraphValue write(GraphWriter& graph, const GraphValue& x) const override { return unit_->write(graph, x, &x); }

 private:
  Device& device_;
  std::unique_ptr<ConvNormAct> unit_;
};

std::unique_ptr<ConvNormAct> named_unit(const LayerContext& context, const std::string& name, const Conv2d& conv) {
  return std::make_unique<ConvNormAct>(context, name, name + "_norm", conv, ConvolutionOptions{}, Activation::relu);
}

std::unique_ptr<Layer> plain_convolution(const LayerContext& context, const std::string& name, const Conv2d& conv) {
  return std::make_unique<Convolution>(context, name, conv, ConvolutionOptions{});
}

// A residual block whose main branch is no row of units: a unit leaves its norm to a unit that follows, also where a
// chain within the chain begins or ends, and to nothing else. `is_unit_first` says which kind takes the block's input.
LayerCase block_of(const std::string& name, bool is_unit_first) {
  const auto make = [=](const LayerContext& context) -> std::unique_ptr<Layer> {
    const Conv2d widening{16, 24, 3, 1, 1};
    auto main = std::make_unique<Sequential>();
    if (is_unit_first) {
      main->add(named_unit(context, "conv1", widening));
    } else {
      main->add(plain_convolution(context, "conv1", widening));
    }
    main->add(plain_convolution(context, "conv2", {24, 24, 1}));
    main->add(named_unit(context, "conv3", {24, 24, 1}));
    auto inner = std::make_unique<Sequential>();
    inner->add(named_unit(context, "conv4", {24, 24, 3, 1, 1}));
    inner->add(named_unit(context, "conv5", {24, 24, 1}));
    main->add(std::move(inner));
    return std::make_unique<Residual>(context, nullptr, std::move(main), named_unit(context, "conv6", {24, 16, 1}));
  };
  return {name, {4, 12, 12, 16}, Layout::features, make};
}

std::unique_ptr<Layer> basic_block(const LayerContext& context, const std::string& name,
                                   std::unique_ptr<Layer> shortcut, std::int64_t in, std::int64_t out,
                                   std::int64_t stride) {
  return std::make_unique<Residual>(context, std::move(shortcut),
                                    named_unit(context, name + "_1", {in, out, 3, stride, 1}),
                                    named_unit(context, name + "_2", {out, out, 3, 1, 1}));
}

// Blocks of each kind behind each other: what comes before one leaves it the sums of its norm's gradient, if it is the
// last to read them in backward.
LayerCase row_of_blocks(const std::string& name) {
  const auto make = [](const LayerContext& context) -> std::unique_ptr<Layer> {
    auto net = std::make_unique<Sequential>();
    net->add(named_unit(context, "stem", {16, 16, 3, 1, 1}));
    net->add(basic_block(context, "identity", nullptr, 16, 16, 1));
    net->add(basic_block(context, "projection", unit(context, {16, 24, 1, 2, 0}, Activation::none), 16, 24, 2));
    net->add(basic_block(context, "subsample", std::make_unique<Subsample>(context, 1, 32), 24, 32, 1));
    net->add(basic_block(context, "last", nullptr, 32, 32, 1));
    return net;
  };
  return {name, {8, 12, 12, 16}, Layout::features, make};
}

LayerCase normed(const std::string& name, const Shape& x, const Conv2d& conv, Activation activation,
                 Layout layout = Layout::features) {
  return {name, x, layout, [=](const LayerContext& context) { return unit(context, conv, activation); }};
}

template <typename Kind, typename... Arguments>
LayerCase layer(const std::string& name, const Shape& x, Layout layout, const Arguments&... arguments) {
  return {name, x, layout, [=](const LayerContext& context) { return std::make_unique<Kind>(context, arguments...); }};
}

// The kinds of layers that the model zoo is made of, with its kernel sizes and strides.
std::vector<LayerCase> layer_cases() {
  const ConvolutionOptions relu{Bias::learned, WeightScheme::uniform_fan_in, Activation::relu};
  return {convolution("conv_3x3", {3, 12, 12, 32}, {32, 32, 3, 1, 1}, {}),
          convolution("conv_3x3_stride_2", {3, 11, 13, 16}, {16, 24, 3, 2, 1}, {}),
          convolution("conv_1x1", {3, 9, 9, 64}, {64, 16, 1, 1, 0}, {}),
          convolution("conv_1x1_stride_2", {3, 10, 10, 16}, {16, 64, 1, 2, 0}, {}),
          convolution("conv_5x5_bias_relu", {3, 14, 14, 6}, {6, 16, 5}, relu),
          convolution("first_conv_7x7_stride_2", {2, 24, 24, 3}, {3, 16, 7, 2, 3}, {}, Layout::images),
          normed("first_unit_3x3", {4, 16, 16, 3}, {3, 16, 3, 1, 1}, Activation::relu, Layout::images),
          normed("unit_3x3", {4, 12, 12, 32}, {32, 32, 3, 1, 1}, Activation::relu),
          normed("unit_3x3_stride_2", {4, 13, 11, 16}, {16, 32, 3, 2, 1}, Activation::relu),
          normed("unit_1x1_without_relu", {4, 8, 8, 32}, {32, 20, 1, 1, 0}, Activation::none),
          layer<BehindResidual>("unit_behind_a_residual", {4, 12, 12, 32}, Layout::features),
          layer<MaxPool>("max_pool", {2, 13, 12, 16}, Layout::features, Pool2d{3, 2, 1}),
          layer<GlobalMeanPool>("mean_pool", {4, 7, 7, 24}, Layout::features),
          layer<Flatten>("flatten", {4, 5, 5, 16}, Layout::features),
          layer<Subsample>("subsample", {2, 9, 8, 16}, Layout::features, 2, 32),
          layer<Linear>("linear", {16, 84}, Layout::plain, "fc", 84, 10),
          layer<Linear>("linear_relu", {16, 120}, Layout::plain, "fc", 120, 84, Activation::relu)};
}

// Too deep for the other precisions: relu_masks of ReLUs within, which rounding decides about, cannot be left out.
std::vector<LayerCase> fp32_cases() {
  return {block_of("block_from_a_unit", true), block_of("block_from_a_convolution", false),
          row_of_blocks("row_of_blocks")};
}

using Case = std::tuple<TestDevice, DType, LayerCase>;

class LayerAgreementTest : public ::testing::TestWithParam<Case> {};

// Of a tensor's largest value.
double tolerance(DType precision) { return precision == DType::f32 ? 1e-4 : precision == DType::f16 ? 5e-3 : 2e-2; }

// Gradients with respect to outputs on which side of a ReLU's corner rounding decides are left out, as it then decides
// about all of the gradient.
void leave_out_flipped(const std::vector<float>& y, const std::vector<float>& expected_y, std::vector<float>& dy) {
  std::size_t flipped = 0;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    if ((y[i] > 0) == (expected_y[i] > 0)) continue;
    dy[i] = 0;
    ++flipped;
  }
  EXPECT_LE(static_cast<double>(flipped), 0.02 * static_cast<double>(dy.size()));
}

TEST_P(LayerAgreementTest, agrees_with_the_cpu_in_fp32) {
  const auto& [kind, precision, layer] = GetParam();
  OneLayer tested(kind.open({.threads = 1, .precision = precision}), layer);
  OneLayer reference(cpu::open_cpu_device({.threads = 1}), layer);

  const std::vector<float> y = tested.forward();
  const std::vector<float> expected_y = reference.forward();
  std::vector<float> dy = exact_values(static_cast<std::int64_t>(y.size()), 99);
  leave_out_flipped(y, expected_y, dy);
  const NamedValues found = tested.backward(dy);

  EXPECT_LE(largest_error(doubles(y), doubles(expected_y)), tolerance(precision)) << "y";
  for (const auto& [name, expected] : reference.backward(dy)) {
    EXPECT_LE(largest_error(found.at(name), expected), tolerance(precision)) << name;
    RecordProperty(name, std::to_string(largest_error(found.at(name), expected)));
  }
  // Running variances are unbiased ones.
  EXPECT_LE(largest_error(doubles(tested.evaluate()), doubles(y)), std::max(tolerance(precision), 1e-2))
      << "evaluation";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const TestDevice& device : test_devices()) {
    for (const DType precision : device.precisions) {
      for (const LayerCase& layer : layer_cases()) all.emplace_back(device, precision, layer);
    }
    for (const LayerCase& layer : fp32_cases()) all.emplace_back(device, DType::f32, layer);
  }
  return all;
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  const auto& [device, precision, layer] = info.param;
  return device.name + "_" + std::string(name_of(precision)) + "_" + layer.name;
}

INSTANTIATE_TEST_SUITE_P(, LayerAgreementTest, ::testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace lockstep::testing
