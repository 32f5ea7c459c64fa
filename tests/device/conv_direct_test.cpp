#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "base/random.hpp"
#include "support/device/conv_case.hpp"

namespace lockstep::cpu {
namespace {

using naive::ConvSizes;
// bf16_products: pairs of bf16 are multiplied, on any processor.
enum class Arithmetic { f32, bf16_storage, bf16_products };
using Parameters = std::tuple<InstructionSet, Arithmetic>;

constexpr std::array directions{Direction::forward, Direction::backward_data, Direction::backward_weight};

// Largest error over largest value; results in bf16 keep eight bits.
double tolerance(DType precision, Direction direction) {
  return precision == DType::bf16 && direction != Direction::backward_weight ? 4e-3 : 1e-5;
}

class DirectTest : public testing::TestWithParam<Parameters> {
 protected:
  static InstructionSet set() { return std::get<0>(GetParam()); }
  static bool multiplies_bf16() { return std::get<1>(GetParam()) == Arithmetic::bf16_products; }
  static DType precision() { return std::get<1>(GetParam()) == Arithmetic::f32 ? DType::f32 : DType::bf16; }
  static ConvCase::Make make() {
    if (multiplies_bf16()) {
      return [](const ConvProblem& problem, const KernelTarget& target) {
        return make_direct(problem, {target.set, target.threads, true});
      };
    }
    return [](const ConvProblem& problem, const KernelTarget& target) {
      return make_direct(problem, {target.set, target.threads, false});
    };
  }

  static void expect_right(const ConvSizes& sizes) {
    ConvCase convolution(set(), precision(), sizes);
    for (const Direction direction : directions) {
      SCOPED_TRACE(convolution.problem(direction).text());
      EXPECT_LE(convolution.error(direction, make()), tolerance(precision(), direction));
    }
  }
  static void expect_right_from_images(const ConvSizes& sizes) {
    ConvCase convolution(set(), precision(), sizes);
    convolution.read_images();
    for (const Direction direction : {Direction::forward, Direction::backward_weight}) {
      SCOPED_TRACE(convolution.problem(direction).text());
      EXPECT_LE(convolution.error(direction, make()), tolerance(precision(), direction));
    }
  }
};

TEST_P(DirectTest, agrees_with_plain_loops_for_every_window_and_size) {
  for (const std::int64_t kernel : {1, 2, 3, 5, 7})
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t size : {1, 7, 28, 33})
        expect_right({{16, 20, kernel, stride, kernel / 2}, size == 7 ? 5 : 1, size, size});
}

TEST_P(DirectTest, agrees_with_plain_loops_for_every_padding) {
  for (const std::int64_t kernel : {1, 3, 5})
    for (const std::int64_t padding : {0, 1, 2, 4})
      for (const std::int64_t stride : {1, 2}) expect_right({{10, 12, kernel, stride, padding}, 2, 9, 6});
}

TEST_P(DirectTest, agrees_with_plain_loops_where_rows_and_columns_differ) {
  for (const Size2d& kernel : {Size2d(1, 7), Size2d(7, 1), Size2d(3, 1), Size2d(2, 3)}) {
    for (const Size2d& stride : {Size2d(1), Size2d(1, 2), Size2d(2, 1), Size2d(3, 2)}) {
      for (const Size2d& padding :
           {Size2d(kernel.height / 2, kernel.width / 2), Size2d(kernel.height - 1, 0), Size2d(0, kernel.width - 1)}) {
        expect_right({{16, 20, kernel, stride, padding}, 2, 9, 12});
        expect_right_from_images({{3, 20, kernel, stride, padding}, 3, 17, 12});
      }
    }
  }
  expect_right({{20, 24, 3, 1, {2, 0}}, 2, 9, 8});
  expect_right({{6, 70, 3, {2, 1}, 1}, 3, 28, 33});
  expect_right({{40, 48, {1, 7}, 1, {0, 3}}, 3, 17, 17});
  expect_right({{40, 48, {7, 1}, 1, {3, 0}}, 3, 17, 17});
  expect_right({{16, 16, {1, 3}, {2, 1}, {0, 1}}, 3, 56, 56});
  expect_right_from_images({{3, 8, {7, 3}, {2, 1}, {3, 1}}, 1, 112, 56});
}

TEST_P(DirectTest, agrees_with_plain_loops_for_channels_that_fill_no_block) {
  for (const std::int64_t in : {1, 2, 3, 6, 16, 20, 64})
    for (const std::int64_t out : {6, 16, 20, 40, 64})
      expect_right({{in, out, 3, 1 + (in + out) % 2, 1}, in == 6 ? 5 : 1, 9, 8});
}

TEST_P(DirectTest, agrees_with_plain_loops_from_images) {
  for (const std::int64_t channels : {1, 2, 3})
    for (const std::int64_t kernel : {1, 3, 5, 7})
      for (const std::int64_t stride : {1, 2})
        expect_right_from_images({{channels, 20, kernel, stride, kernel / 2}, 3, 17, 12});
  expect_right_from_images({{3, 6, 5, 1, 0}, 5, 32, 32});
  expect_right_from_images({{3, 8, 7, 2, 3}, 1, 224, 224});
}

TEST_P(DirectTest, agrees_with_plain_loops_for_layers_of_many_channels) {
  expect_right({{512, 512, 3, 1, 1}, 1, 4, 4});
  expect_right({{256, 512, 3, 2, 1}, 1, 8, 8});
  expect_right({{512, 260, 1, 1, 0}, 5, 7, 7});
  expect_right({{40, 1100, 1, 2, 0}, 5, 7, 7});  // its outputs are cut into ranges, none of which ends at 512
  expect_right({{20, 1032, 3, 1, 1}, 2, 4, 5});
  expect_right({{64, 128, 1, 2, 0}, 3, 56, 56});
  expect_right({{16, 16, 3, 1, 1}, 3, 56, 56});
  expect_right({{16, 16, 3, 1, 1}, 70, 4, 5});
}

// AMX takes 16 or 32 images at a time, of maps that fill no tile by themselves.
TEST_P(DirectTest, agrees_with_plain_loops_for_sets_of_images) {
  for (const std::int64_t images : {14, 16, 17, 31, 32, 33, 64}) {
    expect_right({{20, 24, 3, 1, 1}, images, 3, 3});
    expect_right({{40, 20, 3, 2, 1}, images, 6, 7});
    expect_right({{64, 40, 1, 1, 0}, images, 2, 5});
  }
  expect_right({{24, 64, 3, 1, 1}, 30, 15, 15});
  expect_right({{20, 20, {2, 5}, {3, 2}, {1, 2}}, 47, 8, 11});
  expect_right({{40, 40, 3, 1, 2}, 32, 17, 18});
  expect_right({{128, 70, 3, 1, 1}, 16, 14, 14});  // several bands of rows
}

// A few in every run, as many as LOCKSTEP_TRIES says in a long one.
std::uint64_t random_shapes() {
  const char* const stated = std::getenv("LOCKSTEP_TRIES");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return stated == nullptr ? 10 : static_cast<std::uint64_t>(std::atoi(stated));
}

TEST_P(DirectTest, agrees_with_plain_loops_for_shapes_drawn_at_random) {
  for (std::uint64_t seed = 0; seed < random_shapes(); ++seed) {
    const auto draw = [&](std::uint64_t place, std::int64_t least, std::int64_t most) {
      return least +
             static_cast<std::int64_t>(uniform(philox(7, seed, place)[0]) * static_cast<double>(most - least + 1));
    };
    const Size2d kernel(draw(0, 1, 7), draw(8, 1, 7));
    const Size2d padding(draw(4, 0, kernel.height - 1), draw(10, 0, kernel.width - 1));
    const Conv2d conv{draw(1, 1, 70), draw(2, 1, 70), kernel, {draw(3, 1, 3), draw(9, 1, 3)}, padding};
    const auto size = [&](const Conv1d& one, std::uint64_t place) {
      return std::max<std::int64_t>(1, one.least_size()) + draw(place, 0, 12);
    };
    expect_right({conv, draw(5, 1, 9), size(conv.rows(), 6), size(conv.columns(), 7)});
  }
}

TEST_P(DirectTest, normalises_what_it_reads_and_keeps_the_padding_zero) {
  for (const ConvSizes& sizes :
       {ConvSizes{{20, 16, 3, 1, 1}, 3, 9, 8}, ConvSizes{{16, 20, 1, 1, 0}, 3, 7, 7},
        ConvSizes{{12, 8, 3, 2, 1}, 2, 8, 8}, ConvSizes{{8, 24, 1, 2, 0}, 2, 6, 5},
        ConvSizes{{20, 16, {1, 7}, 1, {0, 3}}, 3, 9, 8}, ConvSizes{{12, 8, {7, 1}, {1, 2}, {3, 0}}, 2, 8, 9},
        ConvSizes{{20, 24, 3, 1, 1}, 31, 7, 5}}) {
    for (const Activation activation : {Activation::none, Activation::relu}) {
      ConvCase convolution(set(), precision(), sizes);
      convolution.use_norm(activation);
      for (const Direction direction : {Direction::forward, Direction::backward_weight}) {
        SCOPED_TRACE(convolution.problem(direction).text());
        // Products are of what the norm made of x, in bf16.
        const double rounding = multiplies_bf16() ? 4e-3 : 0;
        EXPECT_LE(convolution.error(direction, make()), std::max(rounding, tolerance(precision(), direction)));
      }
    }
  }
}

TEST_P(DirectTest, leaves_the_moments_of_its_sums_before_they_are_rounded) {
  EXPECT_LE(ConvCase(set(), precision(), {{20, 20, 3, 1, 1}, 3, 9, 8}).sums_error(Direction::forward, make()), 1e-5);
  EXPECT_LE(ConvCase(set(), precision(), {{16, 70, 1, 2, 0}, 9, 33, 33}).sums_error(Direction::forward, make()), 1e-5);
  EXPECT_LE(ConvCase(set(), precision(), {{20, 70, 3, 1, 1}, 31, 7, 5}).sums_error(Direction::forward, make()), 1e-5);
  const ConvSizes rows{{16, 20, {1, 7}, {2, 1}, {0, 3}}, 3, 17, 12};
  EXPECT_LE(ConvCase(set(), precision(), rows).sums_error(Direction::forward, make()), 1e-5);
}

TEST_P(DirectTest, passes_the_activation_of_the_previous_norm_and_leaves_its_sums) {
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu}) {
    for (const ConvSizes& sizes :
         {ConvSizes{{20, 20, 3, 1, 1}, 3, 9, 8}, ConvSizes{{70, 16, 1, 2, 0}, 9, 33, 33},
          ConvSizes{{16, 24, 3, 2, 1}, 2, 32, 32}, ConvSizes{{16, 24, {7, 1}, {1, 2}, {3, 0}}, 2, 17, 32},
          ConvSizes{{20, 24, 3, 1, 1}, 31, 7, 5}}) {
      ConvCase convolution(set(), precision(), sizes);
      convolution.use_norm(activation);
      // Sums are those of stored values, which bf16 rounds.
      EXPECT_LE(convolution.sums_error(Direction::backward_data, make()), precision() == DType::bf16 ? 4e-3 : 1e-5);
      EXPECT_LE(convolution.last_error(), precision() == DType::bf16 ? 4e-3 : 1e-5);
    }
  }
}

TEST_P(DirectTest, adds_the_gradient_to_what_is_there) {
  for (const ConvSizes& sizes :
       {ConvSizes{{20, 20, 3, 1, 1}, 3, 9, 8}, ConvSizes{{70, 16, 1, 2, 0}, 9, 33, 33},
        ConvSizes{{16, 24, 3, 2, 1}, 2, 32, 32}, ConvSizes{{16, 24, {7, 1}, {1, 2}, {3, 0}}, 2, 17, 32},
        ConvSizes{{20, 24, 3, 2, 1}, 31, 6, 7}}) {
    ConvCase convolution(set(), precision(), sizes);
    EXPECT_LE(convolution.error_onto(make(), 0.5F), precision() == DType::bf16 ? 4e-3 : 1e-5);
  }
}

TEST_P(DirectTest, adds_a_parts_gradient_exactly_once) {
  for (const ConvSizes& sizes : {ConvSizes{{6, 16, 3, 1, 1}, 2, 8, 8}, ConvSizes{{70, 16, 3, 1, 1}, 1, 8, 8},
                                 ConvSizes{{16, 16, 3, 1, 1}, 9, 16, 16}, ConvSizes{{20, 24, 3, 1, 1}, 33, 5, 5}}) {
    ConvCase convolution(set(), precision(), sizes);
    const std::vector<float> alone = convolution.backward_weight(make(), Accumulate::overwrite, 0.5F);
    const std::vector<float> added = convolution.backward_weight(make(), Accumulate::add, 0.5F);
    for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_EQ(added[i], alone[i] + 0.5F);
  }
}

std::string name_of_test(const testing::TestParamInfo<Parameters>& test) {
  constexpr std::array words{"f32", "bf16", "bf16_products"};
  return word_for(std::get<0>(test.param)) + "_" + words[static_cast<std::size_t>(std::get<1>(test.param))];
}

INSTANTIATE_TEST_SUITE_P(sets, DirectTest,
                         testing::Combine(testing::ValuesIn(sets_here()),
                                          testing::Values(Arithmetic::f32, Arithmetic::bf16_storage,
                                                          Arithmetic::bf16_products)),
                         name_of_test);

}  // namespace
}  // namespace lockstep::cpu
