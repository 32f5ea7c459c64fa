#include "device/fused_ops.hpp"

#include <gtest/gtest.h>

#include "support/device/ops_fixture.hpp"

namespace lockstep {
namespace {

struct ConvCase {
  Conv2d conv;
  Shape x;
};

// What a norm in training leaves.
struct NormCase {
  NormWeights weights;
  NormSaved saved;
  Tensor batch_mean, batch_variance;
};

// Each fused operation against the single ones that it stands for, on the same device.
class FusedOpsTest : public OpsTest {
 protected:
  static constexpr float statistics_scale = 0.25F;

  static std::vector<ConvCase> cases() {
    return {{{20, 12, 3, 1, 1}, {3, 9, 8, 20}},  // Winograd
            {{6, 20, 3, 2, 1}, {2, 9, 7, 6}},    // direct, with a stride
            {{16, 6, 1, 1, 0}, {2, 8, 8, 16}}};  // direct, read in place
  }
  static Shape y_shape(const ConvCase& c) {
    return {c.x[0], c.conv.out_size(c.x[1]), c.conv.out_size(c.x[2]), c.conv.out_channels};
  }
  Tensor weight(const Conv2d& conv) {
    const std::vector<std::int64_t> dims{conv.out_channels, conv.in_channels, conv.kernel, conv.kernel};
    const Tensor stored = device_->make_lasting(device_->stored_count(ParameterKind::conv_weight, dims), DType::f32);
    const Values contents = values(conv.out_channels * conv.in_channels * conv.kernel * conv.kernel, 3);
    device_->store(ParameterKind::conv_weight, dims, std::vector<float>(contents.begin(), contents.end()), stored);
    return stored;
  }
  NormCase norm(std::int64_t channels, std::uint64_t seed) {
    Values shift = weights(channels, seed + 1);
    for (double& value : shift) value -= 1;  // of both signs
    return {{vector(weights(channels, seed)), vector(shift)},
            {vector(channels), vector(channels)},
            vector(channels),
            vector(channels)};
  }
  BatchNorm batch_norm(const NormCase& norm, Accumulate accumulate) {
    return {norm.weights, norm.saved, norm.batch_mean, norm.batch_variance, statistics_scale, accumulate};
  }
  // x with its norm pending, in training, and beside it what the norm gives when it is applied.
  struct Input {
    NormCase norm;
    NormedMap map;
    Tensor applied;
  };
  Input input(const Shape& shape, Activation activation) {
    const std::int64_t channels = shape[3];
    Input input{
        norm(channels, 7), {tensor(shape, values(shape.count(), 1)), {rows(channels), activation}}, make(shape)};
    ops_.norm_forward(input.map.x, input.norm.weights, Tensor(), activation, input.applied, input.norm.saved,
                      input.norm.batch_mean, input.norm.batch_variance, 1, Accumulate::overwrite);
    const auto count = static_cast<double>(shape[0] * shape[1] * shape[2]);
    Values variance = contents(input.norm.batch_variance);  // unbiased
    for (double& value : variance) value *= (count - 1) / count;
    fused_.norm_rows(input.norm.weights, input.norm.batch_mean, vector(variance), input.map.norm.rows);
    return input;
  }
  Tensor rows(std::int64_t channels) {
    return make({1, PendingNorm::rows_per_channel, 1, channels}, DType::f32, Layout::features);
  }

  FusedOps& fused_ = *ops_.fused();
};

TEST_P(FusedOpsTest, convolutions_read_behind_the_norm) {
  for (const ConvCase& c : cases()) {
    for (const Activation activation : {Activation::none, Activation::relu}) {
      const Input x = input(c.x, activation);
      const Tensor w = weight(c.conv);
      const Tensor y = make(y_shape(c));
      const Tensor expected = make(y_shape(c));
      fused_.conv_forward(c.conv, x.map, w, y);
      ops_.conv_forward(c.conv, x.applied, w, expected);
      expect_near(y, contents(expected), "y");
      fused_.conv_forward(c.conv, {x.map.x}, w, y);
      ops_.conv_forward(c.conv, x.map.x, w, expected);
      expect_near(y, contents(expected), "y without norm");
    }
  }
}

TEST_P(FusedOpsTest, a_convolution_leaves_the_statistics_and_the_norm_of_its_result) {
  for (const ConvCase& c : cases()) {
    const Input x = input(c.x, Activation::relu);
    const Tensor w = weight(c.conv);
    const std::int64_t channels = c.conv.out_channels;
    const NormCase norm_of_y = norm(channels, 11);
    const NormCase expected_norm = norm(channels, 11);
    const NormedMap y{make(y_shape(c)), {rows(channels), Activation::relu}};
    const Tensor residual = tensor(y_shape(c), values(y_shape(c).count(), 5));
    const Tensor conv_y = make(y_shape(c));
    const Tensor expected = make(y_shape(c));
    ops_.conv_forward(c.conv, x.applied, w, conv_y);
    for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
      fused_.conv_norm_forward(c.conv, x.map, w, y.x, batch_norm(norm_of_y, accumulate), y.norm.rows);
      ops_.norm_forward(conv_y, expected_norm.weights, residual, Activation::relu, expected, expected_norm.saved,
                        expected_norm.batch_mean, expected_norm.batch_variance, statistics_scale, accumulate);
    }
    expect_near(norm_of_y.saved.mean, contents(expected_norm.saved.mean), "mean");
    expect_near(norm_of_y.saved.inverse_deviation, contents(expected_norm.saved.inverse_deviation), "deviation");
    expect_near(norm_of_y.batch_mean, contents(expected_norm.batch_mean), "batch mean");
    expect_near(norm_of_y.batch_variance, contents(expected_norm.batch_variance), "batch variance");
    const Tensor applied = make(y_shape(c));
    fused_.norm_apply(y, residual, applied);
    expect_near(applied, contents(expected), "the norm applied");
  }
}

TEST_P(FusedOpsTest, weights_get_the_gradient_of_what_lies_behind_the_norm) {
  for (const ConvCase& c : cases()) {
    const Input x = input(c.x, Activation::relu);
    const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
    const Tensor dw = weight(c.conv);
    const Tensor expected = weight(c.conv);
    for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
      fused_.conv_backward_weight(c.conv, x.map, dy, dw, accumulate);
      ops_.conv_backward_weight(c.conv, x.applied, dy, expected, accumulate);
    }
    expect_near(dw, contents(expected), "dweight");
  }
}

TEST_P(FusedOpsTest, a_gradient_is_added_to_what_is_there) {
  for (const ConvCase& c : cases()) {
    const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
    const Values before = values(c.x.count(), 4);
    const Tensor dx = tensor(c.x, before);
    const Tensor gradient = make(c.x);
    fused_.conv_backward_data(c.conv, dy, weight(c.conv), dx, Accumulate::add);
    ops_.conv_backward_data(c.conv, dy, weight(c.conv), gradient);
    Values expected = contents(gradient);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
    expect_near(dx, expected, "the sum");
    fused_.conv_backward_data(c.conv, dy, weight(c.conv), dx, Accumulate::overwrite);
    expect_near(dx, contents(gradient), "dx");
  }
}

TEST_P(FusedOpsTest, backward_goes_through_the_convolution_and_the_norm_in_front) {
  for (const ConvCase& c : cases()) {
    for (const Activation activation : {Activation::none, Activation::relu}) {
      const Input x = input(c.x, activation);
      const std::int64_t channels = c.x[3];
      const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
      const Tensor d_scale = vector(channels);
      const Tensor d_shift = vector(channels);
      const Tensor expected_d_scale = vector(channels);
      const Tensor expected_d_shift = vector(channels);
      const Tensor dx = make(c.x);
      const Tensor expected = make(c.x);
      for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
        fused_.conv_norm_backward(c.conv, dy, weight(c.conv), x.map,
                                  {x.norm.saved.inverse_deviation, d_scale, d_shift, accumulate}, dx);
        fused_.norm_gradient(x.map, dx, dx);
        ops_.conv_backward_data(c.conv, dy, weight(c.conv), expected);
        ops_.norm_backward(x.map.x, Tensor(), expected, x.norm.weights, activation, x.norm.saved, expected, Tensor(),
                           expected_d_scale, expected_d_shift, accumulate);
      }
      expect_near(d_scale, contents(expected_d_scale), "d_scale");
      expect_near(d_shift, contents(expected_d_shift), "d_shift");
      expect_near(dx, contents(expected), "dx");
    }
  }
}

auto every_fusing_device_and_precision() {
  std::vector<OpsCase> cases;
  for (const TestDevice& device : test_devices()) {
    for (const DType precision : device.precisions) {
      if (device.open({.threads = 1, .precision = precision})->ops().fused() != nullptr)
        cases.emplace_back(device, precision);
    }
  }
  return testing::ValuesIn(cases);
}
INSTANTIATE_TEST_SUITE_P(, FusedOpsTest, every_fusing_device_and_precision(), case_name);

}  // namespace
}  // namespace lockstep
