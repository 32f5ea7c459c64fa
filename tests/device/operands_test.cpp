#include "device/cuda/operands.hpp"

#include <gtest/gtest.h>

#include <array>

#include "support/messages.hpp"

namespace lockstep::cuda::operands_test {

std::array<std::byte, 64> memory;

// Whose elements nobody reads.
Tensor tensor(const Shape& shape, DType dtype) {
  return {memory.data(), shape.count() * size_of(dtype), shape, dtype, Layout::features};
}

// Only assertions guarded operands, and release builds have none.
TEST(OperandsTest, of_a_convolution_fit) {
  const Conv2d conv{16, 32, 3, 2, 1};
  const Tensor x = tensor({8, 32, 32, 16}, DType::bf16);
  const auto refuses = [&](const Shape& shape, DType dtype, const std::string& named) {
    expect_error(Failure::other, {"16 to 32", "[8, 32, 32, 16] bf16", named},
                 [&] { problem_of(Direction::forward, conv, x, tensor(shape, dtype)); });
  };
  const ConvProblem problem = problem_of(Direction::forward, conv, x, tensor({8, 16, 16, 32}, DType::bf16));
  EXPECT_EQ(problem.n, 8);
  EXPECT_EQ(problem.precision, DType::bf16);
  refuses({8, 16, 16, 31}, DType::bf16, "[8, 16, 16, 31] bf16");
  refuses({8, 32, 16, 32}, DType::bf16, "[8, 32, 16, 32] bf16");
  refuses({7, 16, 16, 32}, DType::bf16, "[7, 16, 16, 32] bf16");
  refuses({8, 16, 16, 32}, DType::f32, "[8, 16, 16, 32] f32");
}

TEST(OperandsTest, of_a_convolution_whose_rows_and_columns_differ_fit) {
  const Conv2d conv{16, 32, {1, 7}, {2, 1}, {0, 3}};
  const Tensor x = tensor({8, 32, 16, 16}, DType::f32);
  EXPECT_NO_THROW(problem_of(Direction::forward, conv, x, tensor({8, 16, 16, 32}, DType::f32)));
  expect_error(Failure::other, {"[8, 32, 8, 32]"}, [&] {
    problem_of(Direction::forward, conv, x, tensor({8, 32, 8, 32}, DType::f32));
  });
}

TEST(OperandsTest, of_a_linear_layer_fit) {
  const Tensor x = tensor({8, 64}, DType::f32);
  const Tensor weight = tensor({640}, DType::f32);
  EXPECT_NO_THROW(require_linear(x, weight, tensor({8, 10}, DType::f32)));
  const auto refuses = [&](const Tensor& y, const std::string& named) {
    expect_error(Failure::other, {"[8, 64] f32", "[640] f32", named}, [&] { require_linear(x, weight, y); });
  };
  refuses(tensor({8, 11}, DType::f32), "[8, 11] f32");
  refuses(tensor({9, 10}, DType::f32), "[9, 10] f32");
  refuses(tensor({8, 10}, DType::f16), "[8, 10] f16");
}

TEST(OperandsTest, of_a_convolution_have_no_deferred_norm) {
  EXPECT_NO_THROW(require_not_deferred(true));
  expect_error(Failure::other, {}, [] { require_not_deferred(false); });
}

}  // namespace lockstep::cuda::operands_test
