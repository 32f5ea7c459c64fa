#include <gtest/gtest.h>

#include "support/device/naive_ops.hpp"
#include "support/device/ops_fixture.hpp"

namespace lockstep {
namespace {

enum class Shortcut { none, residual };

class NormTest : public OpsTest {
 protected:
  static constexpr float statistics_scale = 0.25F;

  // One norm with its operands, run forward on the device.
  struct Run {
    naive::Norm norm;
    Values x_values, residual_values;
    Tensor x, residual, y, batch_mean, batch_variance;
    NormWeights weights;
    NormSaved saved;
  };

  Run forward(const Shape& shape, Activation activation, Shortcut shortcut, double offset = 0) {
    const std::int64_t channels = shape[3];
    Run run;
    // Shifts of both signs shut some pixels and open others.
    run.norm = {weights(channels, 3), weights(channels, 4), activation};
    for (double& shift : run.norm.shift) shift -= 1;
    run.x_values = values(shape.count(), 1);
    for (double& value : run.x_values) value += offset;
    run.x = tensor(shape, run.x_values);
    if (shortcut == Shortcut::residual) {
      run.residual_values = values(shape.count(), 2);
      run.residual = tensor(shape, run.residual_values);
    }
    run.y = make(shape);
    run.weights = {vector(run.norm.scale), vector(run.norm.shift)};
    run.saved = {vector(channels), vector(channels)};
    if (shortcut == Shortcut::residual && activation == Activation::relu) make_relu_mask(run);
    run.batch_mean = vector(channels);
    run.batch_variance = vector(channels);
    forward(run, Accumulate::overwrite);
    return run;
  }
  // Where a device keeps one, backward has nothing but the ReLU mask to go by.
  void make_relu_mask(Run& run) {
    const std::int64_t bytes = ops_.relu_mask_bytes(run.y.shape());
    if (bytes > 0) run.saved.relu_mask = device_->make(Shape{bytes}, DType::u8, Layout::plain);
  }
  static Tensor y_for_backward(const Run& run) { return run.saved.relu_mask ? Tensor() : run.y; }
  void forward(const Run& run, Accumulate accumulate) {
    ops_.norm_forward(run.x, Tensor(),
                      {run.weights, run.saved, run.batch_mean, run.batch_variance, statistics_scale, accumulate},
                      run.residual, run.norm.activation, run.y);
  }

  static Values trained(const naive::Norm& norm, const Shape& shape, const Values& x, const Values& residual) {
    const naive::Moments moments = naive::moments(shape, x);
    return naive::norm(norm, moments.mean, moments.variance, x, residual);
  }

  template <typename Check>
  void for_each_kind(Check check) {
    for (const Activation activation : {Activation::none, Activation::relu})
      for (const Shortcut shortcut : {Shortcut::none, Shortcut::residual}) check(activation, shortcut);
    if (ops_.norms_apply_gelu()) check(Activation::gelu, Shortcut::none);
  }

  // All four gradients by formula (Ioffe and Szegedy 2015); dz = dy after the activation.
  struct Gradients {
    Values dx, dz, d_scale, d_shift;
  };
  static Gradients gradients(const Run& run, const Shape& shape, const Values& dy) {
    const naive::Moments moments = naive::moments(shape, run.x_values);
    const Values z =
        trained({run.norm.scale, run.norm.shift, Activation::none}, shape, run.x_values, run.residual_values);
    const std::size_t channels = run.norm.scale.size();
    const double count = static_cast<double>(dy.size()) / static_cast<double>(channels);
    const auto deviation = [&](std::size_t c) { return std::sqrt(moments.variance[c] + run.norm.epsilon); };
    const auto unit = [&](std::size_t i) {
      return (run.x_values[i] - moments.mean[i % channels]) / deviation(i % channels);
    };
    Gradients result{Values(dy.size()), dy, Values(channels), Values(channels)};
    for (std::size_t i = 0; i < dy.size(); ++i) {
      result.dz[i] *= naive::derivative(run.norm.activation, z[i]);
      result.d_shift[i % channels] += result.dz[i];
      result.d_scale[i % channels] += result.dz[i] * unit(i);
    }
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const std::size_t c = i % channels;
      result.dx[i] = run.norm.scale[c] / deviation(c) *
                     (result.dz[i] - result.d_shift[c] / count - unit(i) * result.d_scale[c] / count);
    }
    return result;
  }
};

TEST_P(NormTest, normalises_adds_the_residual_and_applies_the_activation) {
  for (const Shape& shape : map_shapes()) {
    for_each_kind([&](Activation activation, Shortcut shortcut) {
      const Run run = forward(shape, activation, shortcut);
      expect_near(run.y, trained(run.norm, shape, run.x_values, run.residual_values), "y");
    });
  }
}

TEST_P(NormTest, reports_mean_and_unbiased_variance_and_adds_them_over_parts) {
  for (const Shape& shape : map_shapes()) {
    const Run run = forward(shape, Activation::relu, Shortcut::none);
    naive::Moments moments = naive::moments(shape, run.x_values);
    for (double& value : moments.mean) value *= 2 * static_cast<double>(statistics_scale);
    for (double& value : moments.unbiased_variance) value *= 2 * static_cast<double>(statistics_scale);
    forward(run, Accumulate::add);
    expect_near(run.batch_mean, moments.mean, "mean");
    expect_near(run.batch_variance, moments.unbiased_variance, "variance");
  }
}

TEST_P(NormTest, finds_a_small_variance_beside_a_large_mean) {
  if (device_->precision() != DType::f32) GTEST_SKIP() << "half precision does not hold such values";
  const Shape shape{3, 17, 19, 6};
  const Run run = forward(shape, Activation::none, Shortcut::none, 1000);
  expect_near(
      run.batch_variance,
      [&] {
        Values variance = naive::moments(shape, run.x_values).unbiased_variance;
        for (double& value : variance) value *= static_cast<double>(statistics_scale);
        return variance;
      }(),
      "variance");
}

TEST_P(NormTest, infers_by_the_running_statistics) {
  for (const Shape& shape : map_shapes()) {
    for_each_kind([&](Activation activation, Shortcut shortcut) {
      const Run run = forward(shape, activation, shortcut);
      const Values mean = values(shape[3], 7);
      const Values variance = weights(shape[3], 8);
      ops_.norm_infer(run.x, run.weights, vector(mean), vector(variance), run.residual, activation, run.y);
      expect_near(run.y, naive::norm(run.norm, mean, variance, run.x_values, run.residual_values), "y");
    });
  }
}

TEST_P(NormTest, finds_the_gradients_of_x_residual_scale_and_shift) {
  for (const Shape& shape : map_shapes()) {
    for_each_kind([&](Activation activation, Shortcut shortcut) {
      const Run run = forward(shape, activation, shortcut);
      const Values dy = values(shape.count(), 5);
      const Gradients expected = gradients(run, shape, dy);
      const Tensor dx = make(shape);
      const Tensor d_residual = shortcut == Shortcut::residual ? make(shape) : Tensor();
      const Tensor d_scale = vector(shape[3]);
      const Tensor d_shift = vector(shape[3]);
      ops_.norm_backward({run.x}, y_for_backward(run), tensor(shape, dy), run.weights, activation, run.saved, dx,
                         d_residual, d_scale, d_shift, Accumulate::overwrite);
      // Of a single value dx is what rounding leaves, times 1 / sqrt(epsilon).
      if (shape.count() > shape[3] || activation != Activation::gelu) expect_near(dx, expected.dx, "dx");
      expect_near(d_scale, expected.d_scale, "d_scale");
      expect_near(d_shift, expected.d_shift, "d_shift");
      if (d_residual) expect_near(d_residual, expected.dz, "d_residual");
    });
  }
}

TEST_P(NormTest, gradients_agree_with_central_differences) {
  const Shape shape{2, 3, 3, 3};
  for_each_kind([&](Activation activation, Shortcut shortcut) {
    const Run run = forward(shape, activation, shortcut);
    const Values dy = values(shape.count(), 5);
    const Tensor dx = make(shape);
    const Tensor d_residual = shortcut == Shortcut::residual ? make(shape) : Tensor();
    const Tensor d_scale = vector(shape[3]);
    const Tensor d_shift = vector(shape[3]);
    ops_.norm_backward({run.x}, y_for_backward(run), tensor(shape, dy), run.weights, activation, run.saved, dx,
                       d_residual, d_scale, d_shift, Accumulate::overwrite);
    const auto of_x = [&](const Values& x) { return trained(run.norm, shape, x, run.residual_values); };
    const auto of_residual = [&](const Values& r) { return trained(run.norm, shape, run.x_values, r); };
    const auto of_scale = [&](const Values& scale) {
      return trained({scale, run.norm.shift, activation}, shape, run.x_values, run.residual_values);
    };
    const auto of_shift = [&](const Values& shift) {
      return trained({run.norm.scale, shift, activation}, shape, run.x_values, run.residual_values);
    };
    expect_near(dx, naive::central_differences(of_x, run.x_values, dy), "dx");
    expect_near(d_scale, naive::central_differences(of_scale, run.norm.scale, dy), "d_scale");
    expect_near(d_shift, naive::central_differences(of_shift, run.norm.shift, dy), "d_shift");
    if (d_residual) {
      expect_near(d_residual, naive::central_differences(of_residual, run.residual_values, dy), "d_residual");
    }
  });
}

TEST_P(NormTest, gradients_may_take_the_place_of_dy_and_add_over_parts) {
  const Shape shape{2, 5, 3, 20};
  for_each_kind([&](Activation activation, Shortcut shortcut) {
    const Run run = forward(shape, activation, shortcut);
    const Values dy_values = values(shape.count(), 5);
    Gradients expected = gradients(run, shape, dy_values);
    for (double& value : expected.d_scale) value *= 2;
    for (double& value : expected.d_shift) value *= 2;
    const Tensor d_scale = vector(shape[3]);
    const Tensor d_shift = vector(shape[3]);
    for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
      const Tensor dy = tensor(shape, dy_values);
      const bool has_residual = shortcut == Shortcut::residual;
      const Tensor dx = has_residual ? make(shape) : dy;
      ops_.norm_backward({run.x}, y_for_backward(run), dy, run.weights, activation, run.saved, dx,
                         has_residual ? dy : Tensor(), d_scale, d_shift, accumulate);
      expect_near(dx, expected.dx, "dx");
      if (has_residual) expect_near(dy, expected.dz, "d_residual");
    }
    expect_near(d_scale, expected.d_scale, "d_scale");
    expect_near(d_shift, expected.d_shift, "d_shift");
    // With a residual, dx may take the place of dy too.
    if (shortcut == Shortcut::residual) {
      const Tensor dy = tensor(shape, dy_values);
      ops_.norm_backward({run.x}, y_for_backward(run), dy, run.weights, activation, run.saved, dy, make(shape), d_scale,
                         d_shift, Accumulate::overwrite);
      expect_near(dy, expected.dx, "dx in the place of dy");
    }
  });
}

TEST_P(NormTest, a_nan_shows_in_the_result) {
  const Shape shape{1, 3, 3, 4};
  Run run = forward(shape, Activation::relu, Shortcut::none);
  run.x_values[5] = std::numeric_limits<double>::quiet_NaN();
  run.x = tensor(shape, run.x_values);
  forward(run, Accumulate::overwrite);
  EXPECT_TRUE(std::isnan(contents(run.y)[5]));
}

INSTANTIATE_TEST_SUITE_P(, NormTest, every_device_and_precision(), case_name);

}  // namespace
}  // namespace lockstep
