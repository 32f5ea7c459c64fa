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
#include "nn/gradient_check.hpp"
#include "support/device/devices.hpp"

namespace lockstep::test {
namespace {

using namespace build;

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
  Describe describe;

  friend void PrintTo(const LayerCase& layer, std::ostream* stream) { *stream << layer.name; }
};

class OneLayer {
 public:
  OneLayer(std::shared_ptr<Device> device, const LayerCase& layer)
      : device_(std::move(device)),
        store_(*device_),
        layer_(graph_of(layer.describe, layer.x), {*device_, store_, statistics_}) {
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
    y_ = layer_.forward(x_, Mode::train);
    return read(*device_, y_);
  }

  // Every gradient, and what forward told of the batch.
  NamedValues backward(const std::vector<float>& dy_values) {
    const Tensor dy = device_->make(y_.shape(), y_.dtype(), y_.layout());
    device_->write(dy_values, dy);
    RecordingSink sink;
    NamedValues found;
    if (const Tensor dx = layer_.backward(dy, sink)) found["dx"] = doubles(read(*device_, dx));
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
    return read(*device_, layer_.forward(x_, Mode::evaluate));
  }

 private:
  DType dtype_of(Layout layout) const { return layout == Layout::plain ? DType::f32 : device_->precision(); }

  std::shared_ptr<Device> device_;
  StatisticsShare statistics_;
  ParameterStore store_;
  FusedNetwork layer_;
  Tensor x_;
  Tensor y_;
};

Value unit(Value x, const std::string& name, const ConvOptions& options) {
  return batch_norm(conv(x, name, options), name + "_norm");
}

// A residual block whose main branch has other layers than units. A unit leaves its norm to a convolution that follows.
LayerCase block_of(const std::string& name, bool is_unit_first) {
  const auto net = [=](Value x) {
    const ConvOptions widening{.out = 24, .kernel = 3, .padding = 1};
    Value y = is_unit_first ? relu(unit(x, "conv1", widening)) : conv(x, "conv1", widening);
    y = relu(unit(conv(y, "conv2", {.out = 24, .kernel = 1}), "conv3", {.out = 24, .kernel = 1}));
    y = relu(unit(y, "conv4", {.out = 24, .kernel = 3, .padding = 1}));
    y = relu(unit(y, "conv5", {.out = 24, .kernel = 1}));
    return relu(add(unit(y, "conv6", {.out = 16, .kernel = 1}), x));
  };
  return {name, {4, 12, 12, 16}, Layout::features, net};
}

Value basic_block(Value x, const std::string& name, Value shortcut, std::int64_t out, std::int64_t stride) {
  x = relu(unit(x, name + "_1", {.out = out, .kernel = 3, .stride = stride, .padding = 1}));
  return relu(add(unit(x, name + "_2", {.out = out, .kernel = 3, .padding = 1}), shortcut));
}

// Blocks of each kind behind each other: what comes before one leaves it the sums of its norm's gradient, if a
// convolution is the last to read them in backward.
LayerCase row_of_blocks(const std::string& name) {
  const auto net = [](Value x) {
    x = relu(unit(x, "stem", {.out = 16, .kernel = 3, .padding = 1}));
    x = basic_block(x, "identity", x, 16, 1);
    x = basic_block(x, "projection", unit(x, "shortcut", {.out = 24, .kernel = 1, .stride = 2}), 24, 2);
    x = basic_block(x, "subsample", subsample(x, 1, 32), 32, 1);
    return basic_block(x, "last", x, 32, 1);
  };
  return {name, {8, 12, 12, 16}, Layout::features, net};
}

LayerCase convolution(const std::string& name, const Shape& x, const ConvOptions& options) {
  return {name, x, Layout::features, [=](Value value) { return conv(value, "conv", options); }};
}

LayerCase normed(const std::string& name, const Shape& x, const ConvOptions& options,
                 Layout layout = Layout::features) {
  return {name, x, layout, [=](Value value) { return relu(unit(value, "conv", options)); }};
}

// The kinds of layers that the model zoo is made of, with its kernel sizes and strides.
std::vector<LayerCase> layer_cases() {
  const Layout maps = Layout::features;
  const ConvOptions same_3x3{.out = 32, .kernel = 3, .padding = 1};
  return {
      convolution("conv_3x3", {3, 12, 12, 32}, same_3x3),
      convolution("conv_3x3_stride_2", {3, 11, 13, 16}, {.out = 24, .kernel = 3, .stride = 2, .padding = 1}),
      convolution("conv_1x1", {3, 9, 9, 64}, {.out = 16, .kernel = 1}),
      convolution("conv_1x1_stride_2", {3, 10, 10, 16}, {.out = 64, .kernel = 1, .stride = 2}),
      convolution("conv_1x7", {3, 12, 13, 32}, {.out = 24, .kernel = {1, 7}, .padding = {0, 3}}),
      convolution("conv_7x1_stride_1x2", {3, 12, 13, 16},
                  {.out = 24, .kernel = {7, 1}, .stride = {1, 2}, .padding = {3, 0}}),
      {"conv_5x5_bias_relu",
       {3, 14, 14, 6},
       maps,
       [](Value x) { return relu(conv(x, "conv", {.out = 16, .kernel = 5, .has_bias = true})); }},
      {"first_conv_7x7_stride_2",
       {2, 24, 24, 3},
       Layout::images,
       [](Value x) { return conv(x, "conv", {.out = 16, .kernel = 7, .stride = 2, .padding = 3}); }},
      {"first_conv_3x3_stride_2",
       {2, 25, 22, 1},
       Layout::images,
       [](Value x) { return conv(x, "conv", {.out = 20, .kernel = 3, .stride = 2, .padding = 1}); }},
      {"first_conv_4x4_stride_2",
       {2, 12, 15, 2},
       Layout::images,
       [](Value x) { return conv(x, "conv", {.out = 16, .kernel = 4, .stride = 2}); }},
      {"first_conv_3x5_stride_2",
       {2, 25, 22, 3},
       Layout::images,
       [](Value x) {
         return conv(x, "conv", {.out = 16, .kernel = {3, 5}, .stride = 2, .padding = {1, 2}});
       }},
      {"first_conv_3x3_stride_2_padding_1x0",
       {2, 25, 22, 3},
       Layout::images,
       [](Value x) {
         return conv(x, "conv", {.out = 16, .kernel = 3, .stride = 2, .padding = {1, 0}});
       }},
      normed("first_unit_3x3", {4, 16, 16, 3}, {.out = 16, .kernel = 3, .padding = 1}, Layout::images),
      normed("unit_3x3", {4, 12, 12, 32}, same_3x3),
      normed("unit_3x3_stride_2", {4, 13, 11, 16}, {.out = 32, .kernel = 3, .stride = 2, .padding = 1}),
      normed("unit_3x1_stride_2x1", {4, 13, 11, 16},
             {.out = 32, .kernel = {3, 1}, .stride = {2, 1}, .padding = {1, 0}}),
      {"unit_1x1_without_relu", {4, 8, 8, 32}, maps, [](Value x) { return unit(x, "conv", {.out = 20, .kernel = 1}); }},
      {"unit_behind_a_residual",
       {4, 12, 12, 32},
       maps,
       [=](Value x) { return relu(add(unit(x, "conv", same_3x3), x)); }},
      {"max_pool",
       {2, 13, 12, 16},
       maps,
       [](Value x) {
         return max_pool(x, {3, 2, 1});
       }},
      {"average_pool",
       {2, 13, 12, 16},
       maps,
       [](Value x) {
         return average_pool(x, {3, 2, 1, true}, true);
       }},
      {"mean_pool", {4, 7, 7, 24}, maps, global_mean_pool},
      {"norm_alone", {4, 8, 8, 20}, maps, [](Value x) { return batch_norm(x, "bn"); }},
      {"concat",
       {4, 7, 6, 20},
       maps,
       [](Value x) {
         return concat({sigmoid(x), tanh(x), gelu(x), x});
       }},
      {"add", {4, 7, 6, 20}, maps, [](Value x) { return add(clip(x, -1, 1), leaky_relu(x, 0.1F)); }},
      {"flatten", {4, 5, 5, 16}, maps, flatten},
      {"subsample", {2, 9, 8, 16}, maps, [](Value x) { return subsample(x, 2, 32); }},
      {"linear", {16, 84}, Layout::plain, [](Value x) { return linear(x, "fc", 10); }},
      {"linear_relu", {16, 120}, Layout::plain, [](Value x) { return relu(linear(x, "fc", 84)); }}};
}

// Too deep for the other precisions: relu_masks of ReLUs within, which rounding decides about, cannot be left out.
std::vector<LayerCase> fp32_cases() {
  const auto gelus = [](Value x) {
    x = gelu(unit(x, "a", {.out = 24, .kernel = 3, .padding = 1}));
    return conv(gelu(batch_norm(max_pool(x, {2, 2}), "bn")), "b", {.out = 16, .kernel = 3, .padding = 1});
  };
  return {{"gelus_after_norms", {4, 16, 16, 20}, Layout::features, gelus},
          block_of("block_from_a_unit", true),
          block_of("block_from_a_convolution", false),
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
}  // namespace lockstep::test
