#include "device/conv_problem.hpp"

#include <gtest/gtest.h>

namespace lockstep::conv_problem_test {

ConvProblem problem_of(const Conv2d& conv) {
  return {Direction::forward, conv, 128, 32, 17, Layout::features, DType::f32};
}

// Kernel plans name problems by their text, and outlive a version of the program.
TEST(ConvProblemTest, the_text_has_both_dimensions_only_where_they_differ) {
  EXPECT_EQ(problem_of({16, 32, 3, 2, 1}).text(),
            "forward 16->32 kernel 3 stride 2 padding 1 on 128x32x17 features f32");
  EXPECT_EQ(problem_of({16, 32, {1, 7}, {2, 1}, {0, 3}}).text(),
            "forward 16->32 kernel 1x7 stride 2x1 padding 0x3 on 128x32x17 features f32");
}

TEST(ConvProblemTest, rows_and_columns_are_told_apart) {
  const Conv2d conv{16, 32, {3, 5}, {1, 2}, {1, 2}};
  Conv2d kernel = conv, stride = conv, padding = conv;
  kernel.kernel = {5, 3};
  stride.stride = {2, 1};
  padding.padding = {2, 1};
  for (const Conv2d& other : {kernel, stride, padding}) {
    EXPECT_TRUE(problem_of(conv) < problem_of(other) || problem_of(other) < problem_of(conv));
    EXPECT_NE(problem_of(conv).text(), problem_of(other).text());
  }
}

TEST(ConvProblemTest, flops_are_those_of_the_outputs_and_the_kernels_pixels) {
  EXPECT_EQ(problem_of({16, 32, {1, 7}, {2, 1}, {0, 3}}).flops(), 2.0 * 128 * 16 * 17 * 32 * 16 * 7);
}

}  // namespace lockstep::conv_problem_test
