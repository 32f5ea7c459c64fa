#include "device/cpu/matmul.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/cpu_fixture.hpp"

namespace lockstep::cpu {
namespace {

// A linear layer with x [n, in], weight [out, in], dy [n, out] and its products in double precision.
struct Linear {
  Linear(std::int64_t samples, std::int64_t inputs, std::int64_t outputs)
      : n(samples),
        in(inputs),
        out(outputs),
        x_values(CpuFixture::values(n * in, 1)),
        weight_values(CpuFixture::values(out * in, 2)),
        dy_values(CpuFixture::values(n * out, 3)),
        x(filled(x_values, {n, in})),
        weight(filled(weight_values, {out * in})),
        dy(filled(dy_values, {n, out})) {}

  Tensor filled(const std::vector<float>& values, const Shape& shape) {
    const Tensor tensor = cpu.make(shape, Layout::plain);
    pack_tensor(values, tensor, cpu.context.lanes);
    return tensor;
  }
  // sum over `count` of left(i) * right(i), for a rows x columns result.
  template <typename Left, typename Right>
  static std::vector<double> product(std::int64_t rows, std::int64_t columns, std::int64_t count, Left left,
                                     Right right) {
    std::vector<double> result(static_cast<std::size_t>(rows * columns));
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t i = 0; i < count; ++i)
          result[static_cast<std::size_t>(r * columns + c)] += static_cast<double>(left(r, i)) * right(i, c);
    return result;
  }
  double x_at(std::int64_t row, std::int64_t column) const {
    return x_values[static_cast<std::size_t>(row * in + column)];
  }
  double weight_at(std::int64_t row, std::int64_t column) const {
    return weight_values[static_cast<std::size_t>(row * in + column)];
  }
  double dy_at(std::int64_t row, std::int64_t column) const {
    return dy_values[static_cast<std::size_t>(row * out + column)];
  }

  std::int64_t n, in, out;
  CpuFixture cpu{DType::f32};
  Matmul matmul{cpu.context};
  std::vector<float> x_values, weight_values, dy_values;
  Tensor x, weight, dy;
};

class MatmulTest : public testing::TestWithParam<std::array<std::int64_t, 3>> {};

TEST_P(MatmulTest, agrees_with_plain_loops) {
  const auto [n, in, out] = GetParam();
  Linear layer(n, in, out);
  const Tensor y = layer.cpu.make({n, out}, Layout::plain);
  const Tensor dx = layer.cpu.make({n, in}, Layout::plain);
  const Tensor dweight = layer.cpu.make({out * in}, Layout::plain);
  for (int repeat = 0; repeat < 2; ++repeat) {  // the second call takes the cached kernel
    layer.matmul.linear_forward(layer.x, layer.weight, y);
    layer.matmul.linear_backward_data(layer.dy, layer.weight, dx);
    layer.matmul.linear_backward_weight(layer.x, layer.dy, dweight, Accumulate::overwrite);
  }
  const auto x = [&](auto r, auto c) { return layer.x_at(r, c); };
  const auto dy = [&](auto r, auto c) { return layer.dy_at(r, c); };
  const auto weight = [&](auto r, auto c) { return layer.weight_at(r, c); };
  const auto transposed = [](auto matrix) { return [matrix](auto r, auto c) { return matrix(c, r); }; };
  EXPECT_LE(layer.cpu.error(y, Linear::product(n, out, in, x, transposed(weight))), 1e-5);
  EXPECT_LE(layer.cpu.error(dx, Linear::product(n, in, out, dy, weight)), 1e-5);
  EXPECT_LE(layer.cpu.error(dweight, Linear::product(out, in, n, transposed(dy), x)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(sizes, MatmulTest,
                         testing::Values(std::array<std::int64_t, 3>{1, 1, 1}, std::array<std::int64_t, 3>{5, 84, 10},
                                         std::array<std::int64_t, 3>{64, 400, 120},
                                         std::array<std::int64_t, 3>{3, 33, 1000}));

TEST(MatmulAccumulateTest, adds_a_parts_gradient_exactly_once) {
  Linear layer(4, 20, 10);
  const Tensor alone = layer.cpu.make({200}, Layout::plain);
  const Tensor added = layer.cpu.make({200}, Layout::plain);
  pack_tensor(std::vector<float>(200, 0.5F), added, layer.cpu.context.lanes);
  layer.matmul.linear_backward_weight(layer.x, layer.dy, alone, Accumulate::overwrite);
  layer.matmul.linear_backward_weight(layer.x, layer.dy, added, Accumulate::add);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(added.as<float>()[i], alone.as<float>()[i] + 0.5F);
}

}  // namespace
}  // namespace lockstep::cpu
