#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>

#include "base/random.hpp"
#include "device/cpu/conv/winograd/winograd_kernels.hpp"
#include "support/device/conv_case.hpp"

namespace lockstep::cpu {
namespace {

using naive::ConvSizes;
// bf16_pairs: products are of pairs, in every direction.
enum class Arithmetic { f32, bf16, bf16_pairs };
using Parameters = std::tuple<InstructionSet, Arithmetic>;

constexpr std::array directions{Direction::forward, Direction::backward_data, Direction::backward_weight};

Conv2d conv_of(std::int64_t in, std::int64_t out, std::int64_t padding = 1) { return {in, out, 3, 1, padding}; }
Conv2d stride_2(std::int64_t in, std::int64_t out) { return {in, out, 3, 2, 1}; }

// The cuts that make_winograd chooses among, made so small that every shape here has several pieces and a rest.
std::unique_ptr<ConvKernel> make_first_way(const ConvProblem& problem, const KernelTarget& target) {
  const WinogradShape shape(problem, target);
  if (problem.direction != Direction::backward_weight) return make_winograd_by_tiles(shape, 7);
  return make_winograd_gradient_by_pieces(shape, {11, 4});
}

std::unique_ptr<ConvKernel> make_second_way(const ConvProblem& problem, const KernelTarget& target) {
  const WinogradShape shape(problem, target);
  if (problem.direction != Direction::backward_weight) return make_winograd_by_outputs(shape, {21, 3, 2});
  return make_winograd_gradient_by_weights(shape, {19, 2});
}

constexpr std::array<ConvCase::Make, 3> ways{make_winograd, make_first_way, make_second_way};

class WinogradTest : public testing::TestWithParam<Parameters> {
 protected:
  static InstructionSet set() { return std::get<0>(GetParam()); }
  static DType precision() { return std::get<1>(GetParam()) == Arithmetic::f32 ? DType::f32 : DType::bf16; }
  static bool multiplies_pairs() { return std::get<1>(GetParam()) == Arithmetic::bf16_pairs; }
  static ConvCase case_of(const ConvSizes& sizes) {
    ConvCase convolution(set(), precision(), sizes);
    convolution.use_winograd_pairs(multiplies_pairs() ? WinogradPairs::all : WinogradPairs::none);
    return convolution;
  }

  // Largest error over largest value; features in bf16 keep eight bits, and so do points whose products are of bf16.
  static double tolerance(Direction direction) {
    if (multiplies_pairs()) return 6e-2;
    return precision() == DType::bf16 && direction != Direction::backward_weight ? 4e-3 : 1e-4;
  }
  static double sums_tolerance(double of_fp32) { return multiplies_pairs() ? 6e-2 : of_fp32; }
  static void expect_right(const ConvSizes& sizes) {
    ConvCase convolution = case_of(sizes);
    expect_right(convolution, directions);
  }
  static void expect_right(ConvCase& convolution, std::span<const Direction> wanted) {
    for (const Direction direction : wanted) {
      for (const ConvCase::Make make : ways) {
        SCOPED_TRACE(convolution.problem(direction).text() + " " +
                     make(convolution.problem(direction), convolution.target(1))->name());
        EXPECT_LE(convolution.error(direction, make), tolerance(direction));
        if (multiplies_pairs()) {
          EXPECT_LE(convolution.last_mean_error(), 2.5e-2);
        }
      }
    }
  }
};

TEST_P(WinogradTest, agrees_with_plain_loops_for_every_size) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 7, 8}) expect_right({conv_of(10, 12), 3, size, size});
  for (const std::int64_t size : {28, 32, 33, 56}) expect_right({conv_of(4, 6), 1, size, size});
  expect_right({conv_of(4, 3), 1, 224, 9});
}

TEST_P(WinogradTest, agrees_with_plain_loops_for_every_size_at_stride_2) {
  for (std::int64_t size = 1; size <= 18; ++size) expect_right({stride_2(10, 12), 2, size, size});
  for (const std::int64_t size : {28, 33, 56}) expect_right({stride_2(4, 6), 1, size, size});
  expect_right({stride_2(4, 3), 1, 224, 9});
  expect_right({stride_2(70, 136), 1, 16, 15});
}

TEST_P(WinogradTest, agrees_with_plain_loops_for_every_padding) {
  for (const std::int64_t padding : {0, 1, 2})
    for (const std::int64_t height : {3, 4, 9, 10}) expect_right({conv_of(10, 12, padding), 2, height, 6});
}

TEST_P(WinogradTest, agrees_with_plain_loops_for_channels_that_fill_no_block) {
  for (const std::int64_t in : {4, 6, 16, 20})
    for (const std::int64_t out : {3, 16, 24, 40}) expect_right({conv_of(in, out), in == 6 ? 3 : 1, 7, 6});
}

TEST_P(WinogradTest, agrees_with_plain_loops_for_layers_of_many_channels) {
  expect_right({conv_of(512, 20), 3, 4, 4});
  expect_right({conv_of(20, 512), 1, 7, 7});
  expect_right({conv_of(128, 136), 1, 8, 8});
}

TEST_P(WinogradTest, agrees_with_plain_loops_for_shapes_drawn_at_random) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto draw = [&](std::uint64_t place, std::int64_t least, std::int64_t most) {
      return least +
             static_cast<std::int64_t>(uniform(philox(7, seed, place)[0]) * static_cast<double>(most - least + 1));
    };
    expect_right(
        {conv_of(draw(0, 4, 50), draw(1, 1, 50), draw(2, 0, 2)), draw(3, 1, 5), draw(4, 3, 14), draw(5, 3, 14)});
    expect_right({stride_2(draw(6, 4, 50), draw(7, 1, 50)), draw(8, 1, 5), draw(9, 1, 28), draw(10, 1, 28)});
  }
}

TEST_P(WinogradTest, normalises_what_it_reads_and_keeps_the_padding_zero) {
  constexpr std::array with_norm{Direction::forward, Direction::backward_weight};
  for (const Activation activation : {Activation::none, Activation::relu}) {
    for (const std::int64_t size : {4, 9, 16}) {
      for (const Conv2d& conv : {conv_of(20, 16), stride_2(20, 16)}) {
        ConvCase convolution = case_of({conv, 3, size, size});
        convolution.use_norm(activation);
        expect_right(convolution, with_norm);
      }
    }
  }
}

TEST_P(WinogradTest, leaves_the_moments_of_what_it_stored) {
  for (const ConvCase::Make make : ways) {
    EXPECT_LE(case_of({conv_of(20, 20), 3, 9, 8}).sums_error(Direction::forward, make), sums_tolerance(1e-6));
    EXPECT_LE(case_of({conv_of(6, 30), 3, 33, 33}).sums_error(Direction::forward, make), sums_tolerance(1e-6));
    EXPECT_LE(case_of({stride_2(20, 30), 3, 33, 32}).sums_error(Direction::forward, make), sums_tolerance(1e-6));
  }
}

TEST_P(WinogradTest, passes_the_activation_of_the_previous_norm_and_leaves_its_sums) {
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu}) {
    for (const ConvCase::Make make : ways) {
      for (const ConvSizes& sizes : {ConvSizes{conv_of(20, 12), 3, 9, 8}, ConvSizes{conv_of(30, 6), 1, 33, 33},
                                     ConvSizes{stride_2(20, 12), 2, 19, 18}}) {
        ConvCase convolution = case_of(sizes);
        convolution.use_norm(activation);
        EXPECT_LE(convolution.sums_error(Direction::backward_data, make), sums_tolerance(1e-5));
        EXPECT_LE(convolution.last_error(), tolerance(Direction::backward_data));
      }
    }
  }
}

TEST_P(WinogradTest, adds_the_gradient_to_what_is_there) {
  for (const ConvCase::Make make : ways) {
    EXPECT_LE(case_of({conv_of(20, 12), 3, 9, 8}).error_onto(make, 0.5F), tolerance(Direction::backward_data));
    EXPECT_LE(case_of({stride_2(20, 12), 2, 19, 18}).error_onto(make, 0.5F), tolerance(Direction::backward_data));
  }
}

TEST_P(WinogradTest, adds_a_parts_gradient_exactly_once) {
  for (const ConvCase::Make make : ways) {
    for (const Conv2d& conv : {conv_of(22, 30), stride_2(22, 30)}) {
      ConvCase convolution = case_of({conv, 4, 12, 12});
      const std::vector<float> alone = convolution.backward_weight(make, Accumulate::overwrite, 0.5F);
      const std::vector<float> added = convolution.backward_weight(make, Accumulate::add, 0.5F);
      for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_EQ(added[i], alone[i] + 0.5F);
    }
  }
}

// What device/cpu/README.md says of it.
TEST_P(WinogradTest, errs_by_about_a_hundredth_where_products_are_of_bf16) {
  if (!multiplies_pairs()) GTEST_SKIP() << "products are of fp32";
  for (const Conv2d& conv : {conv_of(64, 64), stride_2(64, 64)}) {
    ConvCase convolution = case_of({conv, 4, 16, 16});
    for (const Direction direction : directions) {
      convolution.error(direction, make_winograd);
      EXPECT_LE(convolution.last_mean_error(), 1.6e-2) << convolution.problem(direction).text();
      EXPECT_GE(convolution.last_mean_error(), 0.2e-2) << convolution.problem(direction).text();
    }
  }
}

std::string name_of_test(const testing::TestParamInfo<Parameters>& test) {
  constexpr std::array words{"f32", "bf16", "bf16_pairs"};
  return word_for(std::get<0>(test.param)) + "_" + words[static_cast<std::size_t>(std::get<1>(test.param))];
}

std::vector<Parameters> parameters_here() {
  std::vector<Parameters> parameters;
  for (const InstructionSet set : sets_here()) {
    parameters.emplace_back(set, Arithmetic::f32);
    parameters.emplace_back(set, Arithmetic::bf16);
    if (multiplies_bf16(set)) parameters.emplace_back(set, Arithmetic::bf16_pairs);
  }
  return parameters;
}

INSTANTIATE_TEST_SUITE_P(sets, WinogradTest, testing::ValuesIn(parameters_here()), name_of_test);

TEST(WinogradChoiceTest, computes_windows_of_three_by_three_of_features) {
  const ConvProblem fits{Direction::forward, conv_of(16, 16), 1, 8, 8, Layout::features, DType::f32};
  const KernelTarget target{InstructionSet::baseline, 1};
  EXPECT_NE(make_winograd(fits, target), nullptr);
  ConvProblem strided = fits;
  strided.conv = stride_2(16, 16);
  EXPECT_NE(make_winograd(strided, target), nullptr);
  for (const Conv2d& conv : {Conv2d{16, 16, 1, 1, 0}, Conv2d{16, 16, 5, 1, 2}, Conv2d{16, 16, 3, 2, 0},
                             Conv2d{16, 16, 3, 3, 1}, Conv2d{16, 16, 3, 1, 3}, Conv2d{16, 16, {1, 3}, 1, {0, 1}},
                             Conv2d{16, 16, 3, {1, 2}, 1}, Conv2d{16, 16, 3, 1, {1, 2}}}) {
    ConvProblem other = fits;
    other.conv = conv;
    EXPECT_EQ(make_winograd(other, target), nullptr) << other.text();
  }
  ConvProblem narrow = fits;
  narrow.conv.in_channels = 3;
  EXPECT_EQ(make_winograd(narrow, target), nullptr);
  narrow.input = Layout::images;
  EXPECT_EQ(make_winograd(narrow, target), nullptr);
}

TEST(WinogradChoiceTest, pays_where_tiles_are_full_and_weights_are_used_often) {
  const auto pays = [](Direction direction, std::int64_t n, std::int64_t size, const Conv2d& conv) {
    return winograd_pays({direction, conv, n, size, size, Layout::features, DType::f32});
  };
  for (const Direction direction : directions) {
    EXPECT_TRUE(pays(direction, 128, 32, conv_of(16, 16)));
    EXPECT_TRUE(pays(direction, 64, 4, conv_of(512, 512)));
    EXPECT_TRUE(pays(direction, 64, 5, conv_of(64, 64)));
    EXPECT_FALSE(pays(direction, 64, 2, conv_of(64, 64)));
    EXPECT_FALSE(pays(direction, 64, 1, conv_of(64, 64)));
    EXPECT_FALSE(pays(direction, 4, 4, conv_of(512, 512)));
    EXPECT_TRUE(pays(direction, 64, 16, stride_2(32, 64)));
    EXPECT_TRUE(pays(direction, 64, 8, stride_2(256, 512)));
    EXPECT_FALSE(pays(direction, 128, 32, stride_2(16, 32)));
    EXPECT_TRUE(pays(direction, 16, 14, stride_2(512, 512)));
    EXPECT_FALSE(pays(direction, 16, 10, stride_2(512, 512)));
    EXPECT_FALSE(pays(direction, 16, 8, stride_2(256, 512)));
  }
  EXPECT_TRUE(pays(Direction::backward_data, 64, 4, conv_of(64, 64, 0)));
  EXPECT_FALSE(pays(Direction::forward, 64, 4, conv_of(64, 64, 0)));
}

}  // namespace
}  // namespace lockstep::cpu
