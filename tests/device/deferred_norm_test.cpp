// Norms that stay deferred between convolutions, where a device lets them, against norms that are applied.
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

class DeferredNormTest : public OpsTest {
 protected:
  static constexpr float statistics_scale = 0.25F;

  static std::vector<ConvCase> cases() {
    return {{{20, 12, 3, 1, 1}, {3, 9, 8, 20}},  // Winograd
            {{6, 20, 3, 2, 1}, {2, 9, 7, 6}},    // direct, with a stride
            {{16, 6, 1, 1, 0}, {2, 8, 8, 16}},   // direct, read in place
            {{12, 20, {1, 7}, {2, 1}, {0, 3}}, {2, 9, 8, 12}}};
  }
  static Shape y_shape(const ConvCase& c) {
    return {c.x[0], c.conv.rows().out_size(c.x[1]), c.conv.columns().out_size(c.x[2]), c.conv.out_channels};
  }
  Tensor weight(const Conv2d& conv) {
    return weight(conv, values(conv.out_channels * conv.in_channels * conv.kernel.area(), 3));
  }
  Tensor weight(const Conv2d& conv, const Values& contents) {
    const std::vector<std::int64_t> dims{conv.out_channels, conv.in_channels, conv.kernel.height, conv.kernel.width};
    const Tensor stored = device_->make_persistent(device_->stored_count(ParameterKind::conv_weight, dims), DType::f32);
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
    input.x = ops_.norm_forward_deferred(x, Tensor(), batch, activation, behind(x));
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
  // Of a convolution of 1 x 1 that changes nothing.
  Tensor identity(const Conv2d& conv) {
    Values one(static_cast<std::size_t>(conv.in_channels * conv.in_channels), 0.0);
    for (std::int64_t c = 0; c < conv.in_channels; ++c) one[static_cast<std::size_t>(c * conv.in_channels + c)] = 1;
    return weight(conv, one);
  }
  // What its reader makes of a map.
  void expect_read(const NormedMap& map, const Tensor& expected, const std::string& what) {
    const std::int64_t channels = map.x.shape()[3];
    const Conv2d conv{channels, channels, 1};
    const Tensor y = make(map.x.shape());
    ops_.conv_forward(conv, map, identity(conv), y, Tensor());
    expect_near(y, contents(expected), what);
  }
  // What its reader makes of a gradient.
  Tensor apply(const NormedGradient& gradient) {
    const std::int64_t channels = gradient.dy.shape()[3];
    const Conv2d conv{channels, channels, 1};
    ops_.conv_backward_weight(conv, {gradient.x.x}, gradient, weight(conv), Accumulate::overwrite);
    return gradient.dy;
  }
  struct NormGradients {
    NormGradient of(const NormCase& norm, Accumulate accumulate) const {
      return {norm.saved.inverse_deviation, d_scale, d_shift, accumulate};
    }

    Tensor d_scale, d_shift;
  };
  NormGradients norm_gradients(std::int64_t channels) { return {vector(channels), vector(channels)}; }
  void backward(const NormCase& norm, const Tensor& x, const Tensor& y, Activation activation, const Tensor& dy,
                const Tensor& dx, const Tensor& d_residual, const NormGradients& gradients, Accumulate accumulate) {
    ops_.norm_backward(x, y, dy, norm.weights, activation, norm.saved, dx, d_residual, gradients.d_scale,
                       gradients.d_shift, accumulate);
  }
};

TEST_P(DeferredNormTest, convolutions_read_behind_the_norm) {
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

TEST_P(DeferredNormTest, a_convolution_leaves_the_statistics_and_the_norm_of_its_result) {
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
      z = ops_.norm_forward_deferred(y, sums_of_y, batch_norm(pending_of_y, accumulate), Activation::relu, behind(y));
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

TEST_P(DeferredNormTest, stays_pending_by_running_statistics_too) {
  const Shape shape{2, 5, 4, 12};
  const NormCase norms = norm(12, 9);
  const Tensor mean = vector(weights(12, 4));
  const Tensor variance = vector(weights(12, 6));
  const Tensor x = tensor(shape, values(shape.count(), 1));
  const Tensor expected = make(shape);
  ops_.norm_infer(x, norms.weights, mean, variance, Tensor(), Activation::relu, expected);
  expect_read(ops_.norm_infer_deferred(x, norms.weights, mean, variance, Activation::relu, behind(x)), expected,
              "the norm as its reader takes it");
}

TEST_P(DeferredNormTest, weights_get_the_gradient_of_what_lies_behind_the_norm) {
  for (const ConvCase& c : cases()) {
    const Input in = input(c.x, Activation::relu);
    const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
    const Tensor dw = weight(c.conv);
    const Tensor expected = weight(c.conv);
    ops_.conv_backward_weight(c.conv, {in.applied}, {dy}, expected, Accumulate::overwrite);
    ops_.conv_backward_weight(c.conv, in.x, {dy}, dw, Accumulate::overwrite);
    expect_near(dw, contents(expected), "dweight");
    ops_.conv_backward_weight(c.conv, in.x, {dy}, dw, Accumulate::add);
    Values twice = contents(expected);
    for (double& value : twice) value *= 2;
    expect_near(dw, twice, "dweight of two parts");
  }
}

TEST_P(DeferredNormTest, a_gradient_is_added_to_what_is_there) {
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
TEST_P(DeferredNormTest, backward_goes_through_the_convolution_and_the_norm_in_front) {
  for (const ConvCase& c : cases()) {
    for (const Activation activation : {Activation::none, Activation::relu}) {
      const Input in = input(c.x, activation);
      const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
      const NormGradients found = norm_gradients(c.x[3]);
      const NormGradients expected = norm_gradients(c.x[3]);
      const Tensor dx = make(c.x);
      const Tensor expected_dx = make(c.x);
      for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
        if (in.kept.is_deferred()) {
          const PreviousNorm front{in.kept, found.of(in.norm, accumulate)};
          ops_.conv_backward_data_norm(c.conv, dy, weight(c.conv), front, dx, Accumulate::overwrite);
        } else {
          ops_.conv_backward_data(c.conv, dy, weight(c.conv), dx, Accumulate::overwrite);
          backward(in.norm, in.kept.x, Tensor(), activation, dx, dx, Tensor(), found, accumulate);
        }
        ops_.conv_backward_data(c.conv, dy, weight(c.conv), expected_dx, Accumulate::overwrite);
        backward(in.norm, in.kept.x, Tensor(), activation, expected_dx, expected_dx, Tensor(), expected, accumulate);
      }
      expect_near(found.d_scale, contents(expected.d_scale), "d_scale");
      expect_near(found.d_shift, contents(expected.d_shift), "d_shift");
      expect_near(in.kept.is_deferred() ? apply({dx, dx, in.kept}) : dx, contents(expected_dx), "dx");
    }
  }
}

// To a block's first convolution, which reads what a norm gave, that norm leaves its sums; what the shortcut's reader
// gives is there already.
TEST_P(DeferredNormTest, a_convolution_finds_the_gradient_of_a_norm_that_was_applied) {
  if (!ops_.fuses_norm_reductions()) return;
  for (const ConvCase& c : cases()) {
    for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu}) {
      for (const bool has_residual : {false, true}) {
        if (activation == Activation::gelu && (has_residual || !ops_.norms_apply_gelu())) continue;
        for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
          const Tensor x = tensor(c.x, values(c.x.count(), 1));
          const Tensor residual = has_residual ? tensor(c.x, values(c.x.count(), 5)) : Tensor();
          const Tensor y = make(c.x);
          NormCase norms = norm(c.x[3], 7);
          norms.saved.rows = behind(x);
          ops_.norm_forward(x, Tensor(), batch_norm(norms, Accumulate::overwrite), residual, activation, y);
          const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
          const Tensor dz = tensor(c.x, values(c.x.count(), 4));
          const Tensor d_y = tensor(c.x, values(c.x.count(), 4));
          const Tensor expected_dx = make(c.x);
          const Tensor expected_dz = has_residual ? make(c.x) : Tensor();
          const NormGradients found = norm_gradients(c.x[3]);
          const NormGradients expected = norm_gradients(c.x[3]);
          const NormedMap kept{x, {norms.saved.rows, activation}};
          const bool is_masked = has_residual && activation == Activation::relu;
          ops_.conv_backward_data_norm(c.conv, dy, weight(c.conv),
                                       {kept, found.of(norms, Accumulate::overwrite), is_masked ? y : Tensor()}, dz,
                                       accumulate);
          ops_.conv_backward_data(c.conv, dy, weight(c.conv), d_y, accumulate);
          backward(norms, x, y, activation, d_y, expected_dx, expected_dz, expected, Accumulate::overwrite);
          expect_near(found.d_scale, contents(expected.d_scale), "d_scale");
          expect_near(found.d_shift, contents(expected.d_shift), "d_shift");
          if (has_residual) expect_near(dz, contents(expected_dz), "dz");
          const Tensor dx = make(c.x);
          expect_near(apply({dx, dz, kept}), contents(expected_dx), "dx");
        }
      }
    }
  }
}

// By each of the ways in which gradients of weights are computed.
TEST_P(DeferredNormTest, who_reads_a_pending_gradient_first_applies_it) {
  const std::vector<ConvCase> readers{{{16, 16, 3, 1, 1}, {3, 9, 7, 16}},      // Winograd by pieces
                                      {{48, 50, 3, 1, 1}, {3, 10, 9, 48}},     // Winograd by weights
                                      {{32, 40, 3, 2, 1}, {4, 23, 24, 32}},    // likewise, of stride 2
                                      {{6, 20, 3, 2, 1}, {2, 9, 7, 6}},        // direct, with a stride
                                      {{16, 6, 1, 1, 0}, {5, 13, 14, 16}},     // direct, in one range
                                      {{16, 1056, 1, 1, 0}, {2, 5, 4, 16}},    // direct, in several of outputs
                                      {{150, 20, 1, 1, 0}, {2, 13, 14, 150}},  // direct, in several of inputs
                                      {{16, 20, {7, 1}, {1, 2}, {3, 0}}, {2, 9, 8, 16}}};
  for (const ConvCase& c : readers) {
    const Input behind_it = input(y_shape(c), Activation::relu);
    if (!behind_it.kept.is_deferred()) return;
    const Tensor x = tensor(c.x, values(c.x.count(), 3));
    const Tensor dy = tensor(y_shape(c), values(y_shape(c).count(), 2));
    const Tensor dz = make(y_shape(c));
    const Tensor dx = make(y_shape(c));
    const NormGradients gradients = norm_gradients(c.conv.out_channels);
    const Tensor dw = weight(c.conv);
    const Tensor expected_dx = make(y_shape(c));
    const Tensor expected_dw = weight(c.conv);
    const Conv2d same{c.conv.out_channels, c.conv.out_channels, 1};
    ops_.conv_backward_data_norm(same, dy, identity(same),
                                 {behind_it.kept, gradients.of(behind_it.norm, Accumulate::overwrite)}, dz,
                                 Accumulate::overwrite);
    backward(behind_it.norm, behind_it.kept.x, Tensor(), Activation::relu, dy, expected_dx, Tensor(), gradients,
             Accumulate::overwrite);
    ops_.conv_backward_weight(c.conv, {x}, {expected_dx}, expected_dw, Accumulate::overwrite);
    ops_.conv_backward_weight(c.conv, {x}, {dx, dz, behind_it.kept}, dw, Accumulate::overwrite);
    expect_near(dx, contents(expected_dx), "dx");
    expect_near(dw, contents(expected_dw), "dweight");
    ops_.conv_backward_weight(c.conv, {x}, {dz, dz, behind_it.kept}, dw, Accumulate::overwrite);
    expect_near(dz, contents(expected_dx), "dx in the place of dz");
    expect_near(dw, contents(expected_dw), "dweight, in place");
  }
}

INSTANTIATE_TEST_SUITE_P(, DeferredNormTest, every_device_and_precision(), case_name);

}  // namespace
}  // namespace lockstep
