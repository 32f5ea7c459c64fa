// GELU and its derivative on each device, against PyTorch and a double-precision oracle.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "support/device/naive_ops.hpp"
#include "support/device/ops_fixture.hpp"

namespace lockstep::gelu_test {

constexpr Curve gelu{.kind = Curve::Kind::gelu};
constexpr double infinity = std::numeric_limits<double>::infinity();
using Values = naive::Values;

double derivative(double x) {
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * density;
}

// The distance of neighbouring fp32 numbers at `value`, and at `least` for smaller ones.
double ulp(double value, double least) { return std::ldexp(1.0, std::ilogb(std::max(std::abs(value), least)) - 23); }

// fp32 numbers of all magnitudes, the tail closely, and the neighbourhood of the derivative's zero.
Values inputs() {
  std::vector<float> all;
  for (int i = -14'000; i <= 14'000; ++i) all.push_back(static_cast<float>(i) / 1000);
  for (int i = -500; i <= 500; ++i) all.push_back(-0.75179154F + static_cast<float>(i) * 0x1p-24F);
  for (int exponent = -149; exponent <= 13; ++exponent) {
    for (const float fraction : {1.0F, 1.3F, 1.7F}) {
      all.push_back(std::ldexp(fraction, exponent));
      all.push_back(-all.back());
    }
  }
  return {all.begin(), all.end()};
}

class GeluTest : public OpsTest {
 protected:
  // As plain rows, and as a map in fp32.
  std::vector<Layout> layouts() const {
    if (device_->precision() != DType::f32) return {Layout::plain};
    return {Layout::plain, Layout::features};
  }
  Tensor tensor_of(const Values& x, Layout layout) {
    const auto count = std::ssize(x);
    const Shape shape = layout == Layout::plain ? Shape{count, 1} : Shape{1, 1, 1, count};
    return tensor(shape, x, layout);
  }
  Values values_at(const Values& x, Layout layout) {
    const Tensor y = tensor_of(x, layout);
    ops_.activate_forward(gelu, y, y);
    return contents(y);
  }
  Values derivatives_at(const Values& x, Layout layout) {
    const Tensor gradient = tensor_of(Values(x.size(), 1.0), layout);
    ops_.activate_backward(gelu, tensor_of(x, layout), gradient, gradient);
    return contents(gradient);
  }
};

// x, value and derivative, by nn.GELU() and its backward in float64.
constexpr std::array<std::array<double, 3>, 11> by_pytorch = {{
    {-5.5, -1.044425936e-07, -5.733472399e-07},
    {-3.0, -0.004049694095, -0.0119456472},
    {-1.0, -0.1586552539, -0.08331547059},
    {-0.75, -0.1699705143, 0.0007742782608},
    {-0.5, -0.1542687694, 0.1325048753},
    {0.0, 0, 0.5},
    {0.25, 0.1496765814, 0.6953733549},
    {0.75, 0.5800294857, 0.9992257217},
    {1.0, 0.8413447461, 1.083315471},
    {2.0, 1.954499736, 1.085231801},
    {4.5, 4.49998471, 1.000068529},
}};

TEST_P(GeluTest, is_that_of_pytorch) {
  Values x;
  for (const auto& row : by_pytorch) x.push_back(row[0]);
  for (const Layout layout : layouts()) {
    const Values y = values_at(x, layout);
    const Values dx = derivatives_at(x, layout);
    for (std::size_t i = 0; i < by_pytorch.size(); ++i) {
      EXPECT_NEAR(y[i], by_pytorch[i][1], 1e-6 * std::abs(by_pytorch[i][1])) << x[i];
      EXPECT_NEAR(dx[i], by_pytorch[i][2], 1e-6 * std::abs(by_pytorch[i][2])) << x[i];
    }
  }
}

TEST_P(GeluTest, errs_by_at_most_8_units_in_the_last_place) {
  const Values x = inputs();
  constexpr double least = 1e-30;  // below it, results lose digits and become 0
  for (const Layout layout : layouts()) {
    const Values y = values_at(x, layout);
    const Values dx = derivatives_at(x, layout);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double value = naive::curve(gelu, x[i]);
      ASSERT_LE(std::abs(y[i] - value), 8 * ulp(value, least)) << x[i];
      ASSERT_LE(std::abs(dx[i] - derivative(x[i])), 8 * ulp(derivative(x[i]), least)) << x[i];
    }
  }
}

// PyTorch has NaN at minus infinity, where we have the limit.
TEST_P(GeluTest, has_limits_and_passes_what_is_no_number) {
  const Values x = {infinity, -infinity, 1e4, -1e4, 0, std::nan("")};
  for (const Layout layout : layouts()) {
    Values y = values_at(x, layout);
    Values dx = derivatives_at(x, layout);
    EXPECT_TRUE(std::isnan(y.back()));
    EXPECT_TRUE(std::isnan(dx.back()));
    y.pop_back();
    dx.pop_back();
    EXPECT_EQ(y, (Values{infinity, 0, 1e4, 0, 0}));
    EXPECT_EQ(dx, (Values{1, 0, 1, 0, 0.5}));
  }
}

TEST(SavedForBackwardTest, is_the_result_except_for_gelu) {
  const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
  const Tensor x = device->make(Shape{2, 3}, DType::f32, Layout::plain);
  const Tensor y = device->make(Shape{2, 3}, DType::f32, Layout::plain);
  EXPECT_EQ(saved_for_backward(gelu, x, y).data(), x.data());
  for (const Curve::Kind kind : {Curve::Kind::relu, Curve::Kind::leaky_relu, Curve::Kind::clip, Curve::Kind::sigmoid,
                                 Curve::Kind::tanh, Curve::Kind::linear}) {
    EXPECT_EQ(saved_for_backward({.kind = kind}, x, y).data(), y.data());
  }
}

INSTANTIATE_TEST_SUITE_P(, GeluTest, every_device_and_precision(), case_name);

}  // namespace lockstep::gelu_test
