// Passes over weight matrices against loops in double over PyTorch's order.
#include "device/flat/matrix_passes.hpp"

#include <cmath>
#include <vector>

#include "support/device/flat_fixture.hpp"

namespace lockstep {
namespace {

using Values = std::vector<float>;

struct MatrixCase {
  const char* name;
  std::vector<std::int64_t> dims;
};

Values wave(std::size_t count, double frequency) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(std::sin(frequency * static_cast<double>(i + 1)));
  }
  return values;
}

class MatrixPassesTest : public FlatTest {
 protected:
  static constexpr std::int64_t first = 32;  // where the weight begins in the flat array

  static const std::vector<MatrixCase>& cases() {
    static const std::vector<MatrixCase> all = {
        {"wide, padded", {6, 5, 3, 3}},
        {"tall", {300, 24, 1, 1}},
        {"of an image", {16, 3, 5, 5}},
        {"larger than a GPU's sum in one stage", {256, 300, 1, 1}},
    };
    return all;
  }

  Tensor stored(const std::vector<std::int64_t>& dims, const Values& values) {
    const std::int64_t count = device_->stored_count(ParameterKind::conv_weight, dims);
    const Tensor array = device_->make_persistent(first + count, DType::f32);
    device_->store(ParameterKind::conv_weight, dims, values, array.slice(first, count));
    return array;
  }
  Values loaded(const std::vector<std::int64_t>& dims, const Tensor& array) {
    Values values(static_cast<std::size_t>(dims[0] * dims[1] * dims[2] * dims[3]));
    device_->load(ParameterKind::conv_weight, dims, array.slice(first, array.shape().count() - first), values);
    return values;
  }
  Tensor wide(const FlatMatrix& matrix) { return device_->make(wide_shape(matrix), DType::f32, Layout::plain); }

  MatrixPasses& passes_ = flat_.matrices();
};

TEST_P(MatrixPassesTest, a_direction_is_the_step_of_sgd_divided_by_its_norm) {
  for (const auto& [name, dims] : cases()) {
    SCOPED_TRACE(name);
    const auto count = static_cast<std::size_t>(dims[0] * dims[1] * dims[2] * dims[3]);
    const Values gradients = wave(count, 0.37);
    const Values before = wave(count, 0.11);
    for (const Momentum kind : {Momentum::classic, Momentum::nesterov}) {
      const Tensor velocity = stored(dims, before);
      const FlatMatrix matrix = passes_.matrix_of(dims, first);
      const Tensor direction = wide(matrix);
      passes_.take_momentum(stored(dims, gradients), matrix, {0.75F, kind}, record(0.1F, 0.5F), velocity, direction);
      const Tensor result = stored(dims, Values(count));
      passes_.put(direction, matrix, result);
      device_->synchronize();

      std::vector<double> expected(count);
      double square = 0;
      const Values after = loaded(dims, velocity);
      for (std::size_t i = 0; i < count; ++i) {
        const double d = 0.5 * static_cast<double>(gradients[i]);
        const double v = 0.75 * static_cast<double>(before[i]) + d;
        ASSERT_NEAR(after[i], v, 1e-6);
        expected[i] = kind == Momentum::nesterov ? d + 0.75 * v : v;
        square += expected[i] * expected[i];
      }
      const Values actual = loaded(dims, result);
      for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(actual[i], expected[i] / std::sqrt(square), 1e-7) << i;
    }
  }
}

// As Ops multiplies them: the rows of the shorter side, whatever the device's order of columns.
TEST_P(MatrixPassesTest, products_are_those_of_rows_or_of_columns) {
  for (const auto& [name, dims] : cases()) {
    SCOPED_TRACE(name);
    const auto columns = static_cast<std::size_t>(dims[1] * dims[2] * dims[3]);
    const std::size_t count = static_cast<std::size_t>(dims[0]) * columns;
    const Values gradients = wave(count, 0.37);
    const FlatMatrix matrix = passes_.matrix_of(dims, first);
    const Tensor direction = wide(matrix);
    passes_.take_momentum(stored(dims, gradients), matrix, {0, Momentum::classic}, record(0.1F),
                          stored(dims, Values(count)), direction);
    const auto rows = static_cast<std::size_t>(direction.shape()[0]);
    const Tensor product = device_->make({direction.shape()[0], direction.shape()[0]}, DType::f32, Layout::plain);
    device_->ops().linear_forward(direction, direction, product);
    Values actual(rows * rows);
    device_->read(product, actual);
    double trace = 0;
    for (std::size_t row = 0; row < rows; ++row) trace += static_cast<double>(actual[row * rows + row]);
    EXPECT_NEAR(trace, 1, 1e-5);
    if (matrix.rows > matrix.columns) continue;
    double square = 0;
    for (const float value : gradients) square += static_cast<double>(value) * static_cast<double>(value);
    double between = 0;  // of the first two rows
    for (std::size_t column = 0; column < columns; ++column) {
      between += static_cast<double>(gradients[column]) * static_cast<double>(gradients[columns + column]);
    }
    EXPECT_NEAR(actual[1], between / square, 1e-6);
  }
}

TEST_P(MatrixPassesTest, a_polynomial_of_a_matrix_has_its_first_factor_on_the_diagonal) {
  const Tensor matrix = device_->make({3, 3}, DType::f32, Layout::plain);
  const Tensor square = device_->make({3, 3}, DType::f32, Layout::plain);
  device_->write(Values{1, 2, 3, 4, 5, 6, 7, 8, 9}, matrix);
  device_->write(Values{9, 8, 7, 6, 5, 4, 3, 2, 1}, square);
  passes_.add_polynomial(matrix, {100, 2, -1}, square);
  Values actual(9);
  device_->read(square, actual);
  EXPECT_EQ(actual, (Values{93, -4, -1, 2, 105, 8, 11, 14, 117}));
}

TEST_P(MatrixPassesTest, a_step_that_is_not_applied_has_no_direction) {
  const std::vector<std::int64_t> dims = {6, 5, 3, 3};
  const FlatMatrix matrix = passes_.matrix_of(dims, first);
  const Values before = wave(270, 0.11);
  const Tensor velocity = stored(dims, before);
  const Tensor direction = wide(matrix);
  const StepRecord skipped = record(0.1F);
  device_->write(Values{static_cast<float>(StepVerdict::overflowed)}, skipped.at(step_verdict));
  passes_.take_momentum(stored(dims, Values(270, INFINITY)), matrix, {0.5F, Momentum::nesterov}, skipped, velocity,
                        direction);
  EXPECT_EQ(loaded(dims, velocity), before);
  Values values(static_cast<std::size_t>(direction.shape().count()));
  device_->read(direction, values);
  EXPECT_EQ(values, Values(values.size(), 0.0F));
}

INSTANTIATE_TEST_SUITE_P(, MatrixPassesTest, testing::ValuesIn(test_devices()), flat_test_name);

}  // namespace
}  // namespace lockstep
