// Norms that stay pending between convolutions, where a device lets them, against norms that are applied.
#include <gtest/gtest.h>

#include "device/ops.hpp"
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

class PendingNormTest : public OpsTest {
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
    return weight(conv, values(conv.out_channels * conv.in_channels * conv.kernel * conv.kernel, 3));
  }
  Tensor weight(const Conv2d& conv, const Values& contents) {
    const std::vector<std::int64_t> dims{conv.out_channels, conv.in_channels, conv.kernel, conv.kernel};
    const Tensor stored = device_->make_lasting(device_->stored_count(ParameterKind::conv_weight, dims), DType::f32);
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
    NormedMap x;  // as its reader takes it
    NormedMap kept;
    Tensor applied;
  };
  Input input(const Shape& shape, Activation activation) {
    const Tensor x = tensor(shape, values(shape.count(), 1));
    Input input{norm(shape[3], 7), {}, {}, make(shape)};
    const BatchNorm batch = batch_norm(input.norm, Accumulate::overwrite);
    ops_.norm_forward(x, Tensor(), batch, Tensor(), activation, input.applied);
    input.x = ops_.norm_forward_pending(x, Tensor(), batch, activation, behind(x));
    input.kept = {x, input.x.norm};
    return input;
  }
  Tensor behind(const Tensor& x) {
    const TensorForm form = ops_.form_after_norm(x);
    return make(form.shape, form.dtype, form.layout);
  }
  Tensor sums(std::int64_t channels) {
    const std::int64_t bytes = ops_.sums_bytes(channels);
    return bytes == 0 ? Tensor() : device_->make(Shape{bytes}, DType::u8, Layout::plain);
  }
  // What its reader makes of a map: a convolution of 1 x 1 that changes nothing.
  void expect_read(const NormedMap& map, const Tensor& expected, const std::string& what) {
    const std::int64_t channels = map.x.shape()[3];
    Values one(static_cast<std::size_t>(channels * channels), 0.0);
    for (std::int64_t c = 0; c < channels; ++c) one[static_cast<std::size_t>(c * channels + c)] = 1;
    const Conv2d conv{channels, channels, 1};
    const Tensor y = make(map.x.shape());
    ops_.conv_forward(conv, map, weight(conv, one), y, Tensor());
    expect_near(y, contents(expected), what);
  }
};

TEST_P(PendingNormTest, convolutions_read_behind_the_norm) {
  for (const ConvCase& c : cases()) {
    for (const Activation activation : {Activation::none, Activation::relu}) {
      const Input in = input(c.x, activation);
      const Tensor w = weight(c.conv);
      const Tensor y = make(y_shape(c));
      const Tensor expected = make(y_shape(c));
      ops_.conv_forward(c.conv, in.x, w, y, Tensor());
      ops_.conv_forward(c.conv, {in.applied}, w, expected, Tensor());
      expect_near(y, contents(expected), "y");
    }
  }
}

TEST_P(PendingNormTest, a_convolution_leaves_the_statistics_and_the_norm_of_its_result) {
  for (const ConvCase& c : cases()) {
    const Input in = input(c.x, Activation::relu);
    const Tensor w = weight(c.conv);
    const std::int64_t channels = c.conv.out_channels;
    const NormCase of_y = norm(channels, 11);
    const NormCase pending_of_y = norm(channels, 11);
    const NormCase expected_norm = norm(channels, 11);
    const Tensor residual = tensor(y_shape(c), values(y_shape(c).count(), 5));
    const Tensor y = make(y_shape(c));
    const Tensor applied = make(y_shape(c));
    const Tensor conv_y = make(y_shape(c));
    const Tensor expected = make(y_shape(c));
    const Tensor expected_alone = make(y_shape(c));
    const Tensor sums_of_y = sums(channels);
    ops_.conv_forward(c.conv, in.x, w, y, sums_of_y);
    ops_.conv_forward(c.conv, {in.applied}, w, conv_y, Tensor());
    NormedMap z;
    for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
      const BatchNorm plain = batch_norm(expected_norm, accumulate);
      ops_.norm_forward(y, sums_of_y, batch_norm(of_y, accumulate), residual, Activation::relu, applied);
      z = ops_.norm_forward_pending(y, sums_of_y, batch_norm(pending_of_y, accumulate), Activation::relu, behind(y));
      ops_.norm_forward(conv_y, Tensor(), plain, residual, Activation::relu, expected);
    }
    for (const NormCase& found : {of_y, pending_of_y}) {
      expect_near(found.saved.mean, contents(expected_norm.saved.mean), "mean");
      expect_near(found.saved.inverse_deviation, contents(expected_norm.saved.inverse_deviation), "deviation");
      expect_near(found.batch_mean, contents(expected_norm.batch_mean), "batch mean");
      expect_near(found.batch_variance, contents(expected_norm.batch_variance), "batch variance");
    }
    expect_near(applied, contents(expected), "the norm applied");
    ops_.norm_forward(conv_y, Tensor(), batch_norm(expected_norm, Accumulate::overwrite), Tensor(), Activation::relu,
                      expected_alone);
    expect_read(z, expected_alone, "the norm as its reader takes it");
  }
}

TEST_P(PendingNormTest, stays_pending_by_running_statistics_too) {
  const Shape shape{2, 5, 4, 12};
  const NormCase norms = norm(12, 9);
  const Tensor mean = vector(weights(12, 4));
  const Tensor variance = vector(weights(12, 6));
  const Tensor x = tensor(shape, values(shape.count(), 1));
  const Tensor expected = make(shape);
  ops_.norm_infer(x, norms.weights, mean, variance, Tensor(), Activation::relu, expected);
  expect_read(ops_.norm_infer_pending(x, norms.weights, mean, variance, Activation::relu, behind(x)), expected,
              "the norm as its reader takes it");
}

TEST_P(PendingNormTest, weights_get_the_gradient_of_what_lies_behind_the_norm) {
  for (const ConvCase& c : cases()) {
    const Input in = input(c.x, Activation::relu);
    const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
    const Tensor dw = weight(c.conv);
    const Tensor expected = weight(c.conv);
    ops_.conv_backward_weight(c.conv, {in.applied}, dy, expected, Accumulate::overwrite);
    ops_.conv_backward_weight(c.conv, in.x, dy, dw, Accumulate::overwrite);
    expect_near(dw, contents(expected), "dweight");
    ops_.conv_backward_weight(c.conv, in.x, dy, dw, Accumulate::add);
    Values twice = contents(expected);
    for (double& value : twice) value *= 2;
    expect_near(dw, twice, "dweight of two parts");
  }
}

TEST_P(PendingNormTest, a_gradient_is_added_to_what_is_there) {
  for (const ConvCase& c : cases()) {
    const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
    const Values before = values(c.x.count(), 4);
    const Tensor dx = tensor(c.x, before);
    const Tensor gradient = make(c.x);
    ops_.conv_backward_data(c.conv, dy, weight(c.conv), dx, Accumulate::add);
    ops_.conv_backward_data(c.conv, dy, weight(c.conv), gradient, Accumulate::overwrite);
    Values expected = contents(gradient);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
    expect_near(dx, expected, "the sum");
  }
}

// As layers do it: through the convolution, and through the norm in front by whichever way the device left it.
TEST_P(PendingNormTest, backward_goes_through_the_convolution_and_the_norm_in_front) {
  for (const ConvCase& c : cases()) {
    for (const Activation activation : {Activation::none, Activation::relu}) {
      const Input in = input(c.x, activation);
      const std::int64_t channels = c.x[3];
      const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
      const Tensor d_scale = vector(channels);
      const Tensor d_shift = vector(channels);
      const Tensor expected_d_scale = vector(channels);
      const Tensor expected_d_shift = vector(channels);
      const Tensor dx = make(c.x);
      const Tensor expected = make(c.x);
      for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
        if (in.kept.is_pending()) {
          const NormGradient gradient{in.norm.saved.inverse_deviation, d_scale, d_shift, accumulate};
          ops_.conv_backward_pending(c.conv, dy, weight(c.conv), {in.kept, gradient}, dx);
        } else {
          ops_.conv_backward_data(c.conv, dy, weight(c.conv), dx, Accumulate::overwrite);
        }
        ops_.norm_backward(in.kept, Tensor(), dx, in.norm.weights, activation, in.norm.saved, dx, Tensor(), d_scale,
                           d_shift, accumulate);
        ops_.conv_backward_data(c.conv, dy, weight(c.conv), expected, Accumulate::overwrite);
        ops_.norm_backward({in.kept.x}, Tensor(), expected, in.norm.weights, activation, in.norm.saved, expected,
                           Tensor(), expected_d_scale, expected_d_shift, accumulate);
      }
      expect_near(d_scale, contents(expected_d_scale), "d_scale");
      expect_near(d_shift, contents(expected_d_shift), "d_shift");
      expect_near(dx, contents(expected), "dx");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, PendingNormTest, every_device_and_precision(), case_name);

}  // namespace
}  // namespace lockstep
