#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/device/naive_ops.hpp"
#include "support/device/ops_fixture.hpp"

namespace lockstep {
namespace {

TEST_P(OpsTest, keeps_what_is_written_to_a_feature_map) {
  for (const Shape& shape : map_shapes()) {
    const Values expected = values(shape.count(), 1);
    EXPECT_EQ(contents(tensor(shape, expected)), expected) << shape.text();
  }
}

TEST_P(OpsTest, adds_a_bias_and_applies_the_activation) {
  for (const Activation activation : {Activation::none, Activation::relu}) {
    for (const Shape& shape : map_shapes()) {
      const Values x_values = values(shape.count(), 1);
      const Values bias = values(shape[3], 2);
      const Tensor x = tensor(shape, x_values);
      ops_.bias_forward(x, vector(bias), activation, x);
      expect_near(x, naive::bias(x_values, bias, activation), "y in the place of x");

      const Shape plain{shape[0] * shape[1] * shape[2], shape[3]};
      const Tensor y = make(plain, Layout::plain);
      ops_.bias_forward(tensor(plain, x_values, Layout::plain), vector(bias), activation, y);
      expect_near(y, naive::bias(x_values, bias, activation), "plain y");
    }
  }
}

TEST_P(OpsTest, finds_the_gradients_of_a_bias) {
  for (const Activation activation : {Activation::none, Activation::relu}) {
    for (const Shape& shape : map_shapes()) {
      const Values x = values(shape.count(), 1);
      const Values bias = weights(shape[3], 2);
      const Values y = naive::bias(x, bias, activation);
      const Values dy = values(shape.count(), 3);
      Values dx = dy;
      Values d_bias(bias.size());
      for (std::size_t i = 0; i < dx.size(); ++i) {
        if (activation == Activation::relu && y[i] <= 0) dx[i] = 0;
        d_bias[i % bias.size()] += 2 * dx[i];
      }
      const Shape plain{shape[0] * shape[1] * shape[2], shape[3]};
      for (const Layout layout : {Layout::features, Layout::plain}) {
        const Shape& used = layout == Layout::plain ? plain : shape;
        const Tensor gradient = vector(shape[3]);
        ops_.bias_backward(tensor(used, y, layout), tensor(used, dy, layout), activation, make(used, layout), gradient,
                           Accumulate::overwrite);
        const Tensor in_place = tensor(used, dy, layout);
        ops_.bias_backward(tensor(used, y, layout), in_place, activation, in_place, gradient, Accumulate::add);
        expect_near(in_place, dx, "dx");
        expect_near(gradient, d_bias, "d_bias");
      }
    }
  }
}

TEST_P(OpsTest, bias_gradients_agree_with_central_differences) {
  const Shape shape{2, 2, 3, 3};
  const Values x = values(shape.count(), 1);
  const Values bias = weights(3, 2);
  const Values dy = values(shape.count(), 3);
  const Tensor d_bias = vector(3);
  const Tensor dx = make(shape);
  ops_.bias_backward(tensor(shape, naive::bias(x, bias, Activation::relu)), tensor(shape, dy), Activation::relu, dx,
                     d_bias, Accumulate::overwrite);
  const auto of_bias = [&](const Values& b) { return naive::bias(x, b, Activation::relu); };
  const auto of_x = [&](const Values& values) { return naive::bias(values, bias, Activation::relu); };
  expect_near(d_bias, naive::central_differences(of_bias, bias, dy), "d_bias");
  expect_near(dx, naive::central_differences(of_x, x, dy), "dx");
}

const std::vector<Curve> curves{{.kind = Curve::Kind::relu},
                                {.kind = Curve::Kind::leaky_relu, .slope = 0.25F},
                                {.kind = Curve::Kind::clip, .low = 0.125F, .high = 0.5F},  // not 0 at 0
                                {.kind = Curve::Kind::sigmoid},
                                {.kind = Curve::Kind::tanh},
                                {.kind = Curve::Kind::gelu},
                                {.kind = Curve::Kind::linear, .slope = -1.5F, .shift = 0.25F}};

TEST_P(OpsTest, applies_elementwise_functions_and_finds_their_gradients) {
  for (const Curve& curve : curves) {
    for (const Shape& shape : map_shapes()) {
      const Shape row{shape[0] * shape[1] * shape[2], shape[3]};
      for (const Layout layout : {Layout::features, Layout::plain}) {
        const Shape& used = layout == Layout::plain ? row : shape;
        const Values x = values(shape.count(), 1);
        Values expected = x;
        for (double& value : expected) value = naive::curve(curve, value);
        const Tensor input = tensor(used, x, layout);
        const Tensor y = make(used, layout);
        ops_.activate_forward(curve, input, y);
        expect_near(y, expected, "y");

        const Values dy = values(shape.count(), 2);
        Values dx = dy;
        constexpr double step = 1e-6;
        for (std::size_t i = 0; i < dx.size(); ++i) {  // from the left, where two derivatives meet
          dx[i] *= (naive::curve(curve, x[i]) - naive::curve(curve, x[i] - step)) / step;
          const bool is_at_bound = curve.kind == Curve::Kind::clip && expected[i] == static_cast<double>(curve.high);
          if (is_at_bound) dx[i] = 0;
        }
        const Tensor in_place = tensor(used, dy, layout);
        ops_.activate_backward(curve, saved_for_backward(curve, input, y), in_place, in_place);
        expect_near(in_place, dx, "dx");
      }
    }
  }
}

// The padding of a map must stay zero: a convolution that reads it would add it.
TEST_P(OpsTest, an_elementwise_function_leaves_padding_channels_zero) {
  const Shape shape{1, 2, 2, 3};
  const Shape wide{1, 2, 2, 6};
  for (const Curve::Kind kind : {Curve::Kind::sigmoid, Curve::Kind::gelu}) {
    const Tensor y = make(shape);
    ops_.activate_forward({.kind = kind}, tensor(shape, values(12, 1)), y);
    const Tensor z = make(wide);
    ops_.subsample_forward(1, y, z);  // copies whole vectors
    for (std::size_t i = 0; i < 24; ++i) {
      EXPECT_EQ(contents(z)[i] == 0, i % 6 >= 3) << i;
    }
  }
}

TEST_P(OpsTest, elementwise_functions_pass_what_is_no_number) {
  const Shape shape{1, 1, 1, 2};
  for (const Curve& curve : curves) {
    const Tensor y = make(shape);
    ops_.activate_forward(curve, tensor(shape, {std::nan(""), 0.25}), y);
    EXPECT_TRUE(std::isnan(contents(y)[0]));
    EXPECT_FALSE(std::isnan(contents(y)[1]));
  }
}

TEST_P(OpsTest, adds_and_copies_maps_and_rows) {
  for (const Shape& shape : map_shapes()) {
    const Shape row{shape[0] * shape[1] * shape[2], shape[3]};
    for (const Layout layout : {Layout::features, Layout::plain}) {
      const Shape& used = layout == Layout::plain ? row : shape;
      const Values a = values(shape.count(), 1);
      const Values b = values(shape.count(), 2);
      Values expected = a;
      for (std::size_t i = 0; i < a.size(); ++i) expected[i] += b[i];
      const Tensor sum = make(used, layout);
      ops_.add(tensor(used, a, layout), tensor(used, b, layout), sum);
      expect_near(sum, expected, "sum");
      const Tensor in_place = tensor(used, a, layout);
      ops_.add(in_place, tensor(used, b, layout), in_place);
      EXPECT_EQ(contents(in_place), contents(sum));
      const Tensor other = make(used, layout);
      ops_.copy(sum, other);
      EXPECT_EQ(contents(other), contents(sum));
    }
  }
}

// Channels that begin within a block, and fill less than one.
TEST_P(OpsTest, joins_the_channels_of_maps_and_takes_them_apart) {
  const std::vector<std::vector<std::int64_t>> cases{{16, 32, 16}, {3}, {1, 1, 1}, {5, 16, 30, 2}, {16, 3, 64, 24}};
  for (const std::vector<std::int64_t>& channels : cases) {
    std::vector<Shape> shapes;
    std::vector<Values> x;
    std::vector<Tensor> maps;
    std::vector<Tensor> parts;
    std::int64_t sum = 0;
    for (const std::int64_t one : channels) {
      shapes.push_back({2, 3, 5, one});
      x.push_back(values(shapes.back().count(), static_cast<std::uint64_t>(one)));
      maps.push_back(tensor(shapes.back(), x.back()));
      sum += one;
    }
    const Tensor y = used_map({2, 3, 5, sum});
    ops_.concat_forward(maps, y);
    EXPECT_EQ(contents(y), naive::concat(shapes, x));
    const Tensor wide_y = make({2, 3, 5, sum + 40});
    ops_.subsample_forward(1, y, wide_y);  // shows padding channels
    const Values widened = contents(wide_y);
    for (std::size_t i = 0; i < widened.size(); ++i) {
      ASSERT_TRUE(static_cast<std::int64_t>(i) % (sum + 40) < sum || widened[i] == 0) << i;
    }
    for (const Shape& shape : shapes) parts.push_back(used_map(shape));
    ops_.concat_backward(y, parts);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(contents(parts[i]), x[i]);
      const Tensor wide = make({2, 3, 5, channels[i] + 40});
      ops_.subsample_forward(1, parts[i], wide);  // shows padding channels
      Values expected;
      for (std::size_t at = 0; at < x[i].size(); ++at) {
        expected.push_back(x[i][at]);
        if ((at + 1) % static_cast<std::size_t>(channels[i]) == 0) expected.insert(expected.end(), 40, 0.0);
      }
      EXPECT_EQ(contents(wide), expected);
    }
  }
}

// Disjoint and overlapping windows, with and without padding, windows that do not cover the last column, and windows
// that reach beyond it.
const std::vector<Pool2d> pools{{2, 2, 0}, {3, 3, 0},       {3, 2, 1},       {3, 1, 1},
                                {2, 3, 0}, {2, 2, 0, true}, {3, 2, 0, true}, {3, 2, 1, true}};

TEST_P(OpsTest, averages_windows_and_finds_the_gradient) {
  for (const Pool2d& pool : pools) {
    for (const bool counts_padding : {false, true}) {
      for (const Shape& shape : {Shape{2, 5, 7, 3}, Shape{1, 8, 6, 20}}) {
        const Shape out{shape[0], pool.out_size(shape[1]), pool.out_size(shape[2]), shape[3]};
        const Values x = values(shape.count(), 1);
        const Tensor y = make(out);
        ops_.average_pool_forward(pool, counts_padding, tensor(shape, x), y);
        const auto of_x = [&](const Values& v) { return naive::average_pool(pool, counts_padding, shape, v); };
        expect_near(y, of_x(x), "y");
        if (shape[3] > 3) continue;  // differences take long
        const Values dy = values(out.count(), 2);
        const Tensor dx = make(shape);
        ops_.average_pool_backward(pool, counts_padding, tensor(out, dy), dx);
        expect_near(dx, naive::central_differences(of_x, x, dy), "dx");
      }
    }
  }
}

// As PyTorch's nn.MaxPool2d(3, 2, padding, ceil_mode=...) does.
TEST(Pool2dTest, counts_windows_as_pytorch_does) {
  const auto windows = [](Pool2d pool, std::int64_t most) {
    std::vector<std::int64_t> sizes;
    const std::int64_t least = std::max<std::int64_t>(pool.least_size(), 1);
    for (std::int64_t size = least; size <= most; ++size) sizes.push_back(pool.out_size(size));
    return sizes;
  };
  EXPECT_EQ(windows({3, 2, 0}, 8), (std::vector<std::int64_t>{1, 1, 2, 2, 3, 3}));           // of 3 to 8 pixels
  EXPECT_EQ(windows({3, 2, 0, true}, 8), (std::vector<std::int64_t>{1, 1, 2, 2, 3, 3, 4}));  // of 2 to 8
  EXPECT_EQ(windows({3, 2, 1, true}, 8), (std::vector<std::int64_t>{1, 2, 2, 3, 3, 4, 4, 5}));
  EXPECT_EQ(windows({2, 3, 0, true}, 8), (std::vector<std::int64_t>{1, 1, 1, 2, 2, 2, 3, 3}));
}

TEST_P(OpsTest, pools_the_largest_value_and_says_where_it_was) {
  for (const Pool2d& pool : pools) {
    for (const Shape& shape : {Shape{3, 5, 7, 3}, Shape{1, 8, 8, 20}, Shape{2, 3, 9, 16}}) {
      const Values x = values(shape.count(), 1);  // few distinct values: many ties
      const auto [expected, places] = naive::max_pool(pool, shape, x);
      const Shape out{shape[0], pool.out_size(shape[1]), pool.out_size(shape[2]), shape[3]};
      const Tensor y = make(out);
      const Tensor winner = make(out, DType::u8, Layout::features);
      ops_.max_pool_forward(pool, tensor(shape, x), y, winner);
      EXPECT_EQ(contents(y), expected);
      EXPECT_EQ(contents(winner), places);
    }
  }
}

TEST_P(OpsTest, gives_the_gradient_of_a_window_to_its_largest_value) {
  for (const Pool2d& pool : pools) {
    const Shape shape{2, 5, 7, 3};
    Values x = values(shape.count(), 1);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += static_cast<double>(i) * 1e-4;  // no ties
    const Shape out{2, pool.out_size(5), pool.out_size(7), 3};
    const auto [y, places] = naive::max_pool(pool, shape, x);
    const Values dy = values(out.count(), 2);
    const Tensor winner = make(out, DType::u8, Layout::features);
    device_->write(std::vector<float>(places.begin(), places.end()), winner);
    const Tensor dx = make(shape);
    ops_.max_pool_backward(pool, tensor(out, dy), winner, dx);
    const auto of_x = [&](const Values& values) { return naive::max_pool(pool, shape, values).first; };
    expect_near(dx, naive::central_differences(of_x, x, dy), "dx");
  }
}

TEST_P(OpsTest, blurs_about_each_pixel_or_every_second_one_and_finds_the_gradient) {
  for (const std::int64_t stride : {1, 2}) {
    for (const Shape& shape : {Shape{2, 5, 7, 3}, Shape{1, 6, 4, 20}, Shape{2, 1, 2, 16}, Shape{1, 1, 1, 1}}) {
      const Shape out{shape[0], (shape[1] + stride - 1) / stride, (shape[2] + stride - 1) / stride, shape[3]};
      const Values x = values(shape.count(), 1);
      const Tensor y = make(out);
      ops_.blur_forward(stride, tensor(shape, x), y);
      expect_near(y, naive::blur(stride, shape, out, x), "y");

      const Values dy = values(out.count(), 2);
      const Tensor dx = make(shape);
      ops_.blur_backward(stride, tensor(out, dy), dx);
      const auto of_x = [&](const Values& values) { return naive::blur(stride, shape, out, values); };
      expect_near(dx, naive::central_differences(of_x, x, dy), "dx");
    }
  }
}

TEST_P(OpsTest, pools_the_mean_and_spreads_its_gradient) {
  for (const Shape& shape : map_shapes()) {
    const Shape out{shape[0], shape[3]};
    const Values x = values(shape.count(), 1);
    const Tensor y = make(out, Layout::plain);
    ops_.mean_pool_forward(tensor(shape, x), y);
    expect_near(y, naive::mean_pool(shape, x), "y");

    const Values dy = values(out.count(), 2);
    Values expected(x.size());
    naive::for_each_element(shape, [&](auto n, auto row, auto column, auto c) {
      expected[naive::at(shape, n, row, column, c)] =
          dy[static_cast<std::size_t>(n * shape[3] + c)] / static_cast<double>(shape[1] * shape[2]);
    });
    const Tensor dx = make(shape);
    ops_.mean_pool_backward(tensor(out, dy, Layout::plain), dx);
    expect_near(dx, expected, "dx");
  }
}

TEST_P(OpsTest, mean_pool_gradient_agrees_with_central_differences) {
  const Shape shape{2, 3, 2, 3};
  const Values dy = values(6, 2);
  const Tensor dx = make(shape);
  ops_.mean_pool_backward(tensor(Shape{2, 3}, dy, Layout::plain), dx);
  const auto of_x = [&](const Values& x) { return naive::mean_pool(shape, x); };
  expect_near(dx, naive::central_differences(of_x, values(shape.count(), 1), dy), "dx");
}

TEST_P(OpsTest, flattens_in_the_order_of_channel_row_column_and_back) {
  for (const Shape& shape : map_shapes()) {
    const Values x = values(shape.count(), 1);
    const Tensor y = make(Shape{shape[0], shape[1] * shape[2] * shape[3]}, Layout::plain);
    ops_.flatten_forward(tensor(shape, x), y);
    EXPECT_EQ(contents(y), naive::flatten(shape, x)) << shape.text();
    const Tensor dx = make(shape);
    ops_.flatten_backward(y, dx);
    EXPECT_EQ(contents(dx), x) << shape.text();
  }
}

TEST_P(OpsTest, mirrors_pictures) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 3, 5, 3}, Shape{3, 4, 8, 1}, Shape{1, 2, 17, 2}}) {
    const auto images = [&] { return device_->make(shape, device_->image_dtype(), Layout::images); };
    const Tensor x = images();
    const Tensor y = images();
    std::vector<float> values(static_cast<std::size_t>(shape.count()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
    device_->write(values, x);
    ops_.mirror(x, y);
    std::vector<float> mirrored(values.size());
    device_->read(y, mirrored);
    const auto at = [&](std::int64_t row, std::int64_t column, std::int64_t channel) {
      return static_cast<std::size_t>((row * shape[2] + column) * shape[3] + channel);
    };
    for (std::int64_t row = 0; row < shape[0] * shape[1]; ++row) {
      for (std::int64_t column = 0; column < shape[2]; ++column) {
        for (std::int64_t channel = 0; channel < shape[3]; ++channel) {
          ASSERT_EQ(mirrored[at(row, column, channel)], values[at(row, shape[2] - 1 - column, channel)])
              << shape.text();
        }
      }
    }
  }
}

TEST_P(OpsTest, shifts_pictures_and_reflects_them_at_their_edges) {
  const auto reflected = [](std::int64_t i, std::int64_t count) {
    return i < 0 ? -i : i >= count ? 2 * count - 2 - i : i;
  };
  for (const Shape& shape : {Shape{2, 3, 5, 3}, Shape{3, 4, 8, 1}, Shape{1, 2, 17, 2}}) {
    const auto images = [&] { return device_->make(shape, device_->image_dtype(), Layout::images); };
    const Tensor x = images();
    const Tensor y = images();
    std::vector<float> values(static_cast<std::size_t>(shape.count()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251);
    device_->write(values, x);
    for (const auto& [rows, columns] : {std::pair(-1, -1), {1, 1}, {0, 4}, {1, -2}, {0, 0}}) {
      ops_.shift(rows, columns, x, y);
      std::vector<float> shifted(values.size());
      device_->read(y, shifted);
      for (std::int64_t i = 0; i < shape.count(); ++i) {
        const std::int64_t channel = i % shape[3];
        const std::int64_t column = i / shape[3] % shape[2];
        const std::int64_t row = i / (shape[3] * shape[2]) % shape[1];
        const std::int64_t image = i / (shape[3] * shape[2] * shape[1]);
        const std::int64_t from_row = image * shape[1] + reflected(row + rows, shape[1]);
        const std::int64_t from = (from_row * shape[2] + reflected(column + columns, shape[2])) * shape[3] + channel;
        ASSERT_EQ(shifted[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(from)])
            << shape.text() << " by " << rows << ", " << columns << " at " << i;
      }
    }
  }
}

TEST_P(OpsTest, subsamples_and_widens_with_zeros) {
  for (const Shape& shape : {Shape{2, 8, 8, 16}, Shape{3, 5, 7, 3}, Shape{1, 1, 1, 6}, Shape{1, 4, 6, 20}}) {
    for (const std::int64_t channels : {shape[3], 2 * shape[3]}) {
      const Shape out{shape[0], (shape[1] + 1) / 2, (shape[2] + 1) / 2, channels};
      const Values x = values(shape.count(), 1);
      const Tensor y = make(out);
      ops_.subsample_forward(2, tensor(shape, x), y);
      EXPECT_EQ(contents(y), naive::subsample(2, shape, out, x)) << shape.text();

      const Values dy = values(out.count(), 2);
      Values expected(x.size());
      naive::for_each_element(out, [&](auto n, auto row, auto column, auto c) {
        if (c < shape[3]) expected[naive::at(shape, n, 2 * row, 2 * column, c)] = dy[naive::at(out, n, row, column, c)];
      });
      const Tensor dx = make(shape);
      ops_.subsample_backward(2, tensor(out, dy), dx);
      EXPECT_EQ(contents(dx), expected) << shape.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, OpsTest, every_device_and_precision(), case_name);

}  // namespace
}  // namespace lockstep
