#include "device/cpu/conv/convolution_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/cpu/layout/cpu_layout.hpp"
#include "support/device/cpu_fixture.hpp"
#include "support/device/naive_convolution.hpp"

namespace lockstep::cpu::convolution_engine_test {

using naive::ConvSizes;

Conv2d conv_of(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return {in, out, kernel, stride, kernel / 2};
}

// The tensors of one convolution, filled with values that precision holds exactly, and their stored weights.
class Convolution {
 public:
  Convolution(CpuFixture& cpu, const ConvSizes& sizes)
      : cpu_(cpu),
        sizes_(sizes),
        x_values_(cpu.values(sizes.x_count(), 1)),
        dy_values_(cpu.values(sizes.y_count(), 2)),
        weight_values_(cpu.values(sizes.weight_count(), 3)),
        x_(cpu.make(x_shape(), input_layout())),
        dy_(cpu.make(y_shape(), Layout::features)),
        weight_(cpu.make_weight(dims())) {
    pack_tensor(x_values_, x_, cpu.context.lanes);
    pack_tensor(dy_values_, dy_, cpu.context.lanes);
    pack_parameter(ParameterKind::conv_weight, dims(), weight_values_, cpu_.floats(weight_), cpu.context.lanes);
  }

  double forward_error(ConvolutionEngine& engine) {
    const Tensor y = cpu_.make(y_shape(), Layout::features);
    engine.conv_forward(sizes_.conv, x_, weight_, y);
    EXPECT_TRUE(cpu_.padding_is_zero(y));
    return cpu_.error(y, naive::conv_forward(sizes_, x_values_, weight_values_));
  }
  double backward_data_error(ConvolutionEngine& engine) {
    const Tensor dx = cpu_.make(x_shape(), Layout::features);
    engine.conv_backward_data(sizes_.conv, dy_, weight_, dx);
    EXPECT_TRUE(cpu_.padding_is_zero(dx));
    return cpu_.error(dx, naive::conv_backward_data(sizes_, dy_values_, weight_values_));
  }
  std::vector<float> forward(ConvolutionEngine& engine) {
    const Tensor y = cpu_.make(y_shape(), Layout::features);
    engine.conv_forward(sizes_.conv, x_, weight_, y);
    return contents(y);
  }
  std::vector<float> backward_data(ConvolutionEngine& engine) {
    if (input_layout() == Layout::images) return {};
    const Tensor dx = cpu_.make(x_shape(), Layout::features);
    engine.conv_backward_data(sizes_.conv, dy_, weight_, dx);
    return contents(dx);
  }
  double backward_weight_error(ConvolutionEngine& engine) {
    const std::vector<float> dweight = backward_weight(engine, Accumulate::overwrite, 0);
    return largest_error(dweight, naive::conv_backward_weight(sizes_, x_values_, dy_values_));
  }
  // The gradient in PyTorch's order, computed onto weights that were all `before`.
  std::vector<float> backward_weight(ConvolutionEngine& engine, Accumulate accumulate, float before) {
    const Tensor dweight = cpu_.make_weight(dims());
    const std::vector<float> old(static_cast<std::size_t>(sizes_.weight_count()), before);
    pack_parameter(ParameterKind::conv_weight, dims(), old, cpu_.floats(dweight), cpu_.context.lanes);
    engine.conv_backward_weight(sizes_.conv, x_, dy_, dweight, {.accumulate = accumulate});
    std::vector<float> values(old.size());
    unpack_parameter(ParameterKind::conv_weight, dims(), cpu_.floats(dweight), values, cpu_.context.lanes);
    return values;
  }

 private:
  std::vector<std::int64_t> dims() const {
    const Conv2d& conv = sizes_.conv;
    return {conv.out_channels, conv.in_channels, conv.kernel.height, conv.kernel.width};
  }
  std::vector<float> contents(const Tensor& tensor) const {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
    unpack_tensor(tensor, values, cpu_.context.lanes);
    return values;
  }
  Shape x_shape() const { return {sizes_.n, sizes_.h, sizes_.w, sizes_.conv.in_channels}; }
  Shape y_shape() const { return {sizes_.n, sizes_.out_h(), sizes_.out_w(), sizes_.conv.out_channels}; }
  Layout input_layout() const {
    return sizes_.conv.in_channels == 1 || sizes_.conv.in_channels == 3 ? Layout::images : Layout::features;
  }

  CpuFixture& cpu_;
  ConvSizes sizes_;
  std::vector<float> x_values_;
  std::vector<float> dy_values_;
  std::vector<float> weight_values_;
  Tensor x_;
  Tensor dy_;
  Tensor weight_;
};

// Largest error over largest value; Winograd's transforms cost a digit, bf16 keeps eight bits, of its points as well
// where products are of pairs (conv_winograd_test tells how far those err in the mean).
double tolerance(const CpuFixture& cpu, const ConvSizes& sizes) {
  if (cpu.context.precision == DType::bf16) return multiplies_bf16(widest_instruction_set()) ? 3e-2 : 2e-2;
  return sizes.conv.kernel == 3 && sizes.conv.stride == 1 ? 1e-4 : 1e-5;
}

void expect_right(CpuFixture& cpu, const ConvSizes& sizes) {
  SCOPED_TRACE(fmt::format("{}->{} kernel {} stride {} on {}x{}x{}", sizes.conv.in_channels, sizes.conv.out_channels,
                           sizes.conv.kernel.text(), sizes.conv.stride.text(), sizes.n, sizes.h, sizes.w));
  ConvolutionEngine engine(cpu.context, widest_instruction_set());
  Convolution convolution(cpu, sizes);
  EXPECT_LE(convolution.forward_error(engine), tolerance(cpu, sizes));
  EXPECT_LE(convolution.backward_weight_error(engine), tolerance(cpu, sizes));
  EXPECT_LE(convolution.backward_data_error(engine), tolerance(cpu, sizes));
}

// Kernel and stride with the sizes and batches; channels vary in the test below.
std::vector<ConvSizes> window_grid() {
  std::vector<ConvSizes> grid;
  for (const std::int64_t kernel : {1, 3, 5, 7})
    for (const std::int64_t stride : {1, 2})
      for (const std::int64_t size : {1, 7, 28, 33})
        grid.push_back({conv_of(16, 20, kernel, stride), size == 7 ? 5 : 2, size, size});
  grid.push_back({{16, 20, {1, 7}, 1, {0, 3}}, 2, 17, 16});
  grid.push_back({{16, 20, {7, 1}, {2, 1}, {3, 0}}, 2, 17, 16});
  return grid;
}

std::vector<ConvSizes> channel_grid() {
  std::vector<ConvSizes> grid;
  for (const std::int64_t in : {1, 2, 3, 6, 16, 20, 64})  // 2: features of a very narrow net, not images
    for (const std::int64_t out : {6, 16, 20, 64})
      grid.push_back({conv_of(in, out, 3, 1 + (in + out) % 2), in == 6 ? 5 : 1, 9, 8});
  return grid;
}

class ConvolutionEngineTest : public testing::TestWithParam<DType> {
 protected:
  CpuFixture cpu_{GetParam()};
};

TEST_P(ConvolutionEngineTest, agrees_with_plain_loops_for_every_window_and_size) {
  for (const ConvSizes& sizes : window_grid()) expect_right(cpu_, sizes);
}

TEST_P(ConvolutionEngineTest, agrees_with_plain_loops_for_channels_that_fill_no_block) {
  for (const ConvSizes& sizes : channel_grid()) expect_right(cpu_, sizes);
}

TEST_P(ConvolutionEngineTest, agrees_with_plain_loops_for_the_layers_of_the_models_on_two_threads) {
  CpuFixture cpu(GetParam(), 2);
  expect_right(cpu, {{3, 6, 5, 1, 0}, 5, 32, 32});
  expect_right(cpu, {{6, 16, 5, 1, 0}, 5, 14, 14});
  expect_right(cpu, {{1, 10, 5, 1, 0}, 2, 28, 28});
  expect_right(cpu, {{3, 64, 7, 2, 3}, 1, 33, 33});
  expect_right(cpu, {{64, 64, 3, 1, 1}, 2, 32, 32});
  expect_right(cpu, {{20, 64, 1, 2, 0}, 2, 7, 7});
}

TEST_P(ConvolutionEngineTest, adds_a_parts_gradient_exactly_once) {
  ConvolutionEngine engine(cpu_.context, widest_instruction_set());
  Convolution convolution(cpu_, {conv_of(6, 16, 3, 1), 2, 8, 8});
  const std::vector<float> alone = convolution.backward_weight(engine, Accumulate::overwrite, 0.5F);
  const std::vector<float> added = convolution.backward_weight(engine, Accumulate::add, 0.5F);
  for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_EQ(added[i], alone[i] + 0.5F);
}

TEST_P(ConvolutionEngineTest, bits_do_not_depend_on_the_number_of_threads) {
  for (const ConvSizes& sizes :
       {ConvSizes{conv_of(16, 20, 3, 1), 5, 12, 12}, ConvSizes{conv_of(64, 64, 3, 2), 3, 9, 9},
        ConvSizes{conv_of(3, 16, 3, 1), 4, 32, 32}, ConvSizes{conv_of(20, 64, 1, 2), 2, 7, 7}}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      CpuFixture cpu(GetParam(), threads);
      ConvolutionEngine engine(cpu.context, widest_instruction_set());
      Convolution convolution(cpu, sizes);
      std::vector<float>& result = results.emplace_back(convolution.backward_weight(engine, Accumulate::overwrite, 0));
      for (const std::vector<float>& more : {convolution.forward(engine), convolution.backward_data(engine)}) {
        result.insert(result.end(), more.begin(), more.end());
      }
    }
    EXPECT_EQ(results[1], results[0]);
    EXPECT_EQ(results[2], results[0]);
  }
}

TEST_P(ConvolutionEngineTest, takes_nothing_from_the_arena_for_good) {
  ConvolutionEngine engine(cpu_.context, widest_instruction_set());
  Convolution convolution(cpu_, {conv_of(16, 16, 3, 1), 2, 8, 8});
  const std::int64_t before = cpu_.arena.used_bytes();
  convolution.forward_error(engine);
  convolution.backward_weight(engine, Accumulate::add, 0);
  EXPECT_EQ(cpu_.arena.used_bytes(), before);
}

INSTANTIATE_TEST_SUITE_P(precisions, ConvolutionEngineTest, testing::Values(DType::f32, DType::bf16),
                         [](const auto& test) { return test.param == DType::bf16 ? "bf16" : "f32"; });

// Sums of products of few bits, which fp32 holds exactly; Winograd's points round them.
TEST(ConvolutionChoiceTest, direct_convolutions_may_take_the_place_of_the_rules) {
  const ConvSizes sizes{conv_of(64, 64, 3, 1), 2, 16, 16};
  for (const Convolutions choice : {Convolutions::by_rule, Convolutions::direct}) {
    CpuFixture cpu(DType::f32);
    cpu.context.convolutions = choice;
    ConvolutionEngine engine(cpu.context, widest_instruction_set());
    Convolution convolution(cpu, sizes);
    const bool is_exact = choice == Convolutions::direct;
    EXPECT_EQ(convolution.forward_error(engine) == 0, is_exact);
    EXPECT_EQ(convolution.backward_data_error(engine) == 0, is_exact);
    EXPECT_EQ(convolution.backward_weight_error(engine) == 0, is_exact);
  }
}

TEST(ConvolutionGradientTest, agrees_with_central_differences) {
  const ConvSizes sizes{conv_of(4, 5, 3, 2), 1, 5, 5};
  CpuFixture cpu(DType::f32);
  const std::vector<float> x = cpu.values(sizes.x_count(), 1);
  const std::vector<float> dy = cpu.values(sizes.y_count(), 2);
  std::vector<float> weight = cpu.values(sizes.weight_count(), 3);
  const auto loss = [&] {
    double sum = 0;
    const std::vector<double> y = naive::conv_forward(sizes, x, weight);
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  ConvolutionEngine engine(cpu.context, widest_instruction_set());
  Convolution convolution(cpu, sizes);
  const std::vector<float> gradient = convolution.backward_weight(engine, Accumulate::overwrite, 0);
  for (std::size_t i = 0; i < weight.size(); i += 7) {
    const float value = weight[i];
    weight[i] = value + 0.5F;
    const double above = loss();
    weight[i] = value - 0.5F;
    EXPECT_NEAR(gradient[i], above - loss(), 1e-4);
    weight[i] = value;
  }
}

TEST(KernelRuleTest, takes_winograd_where_it_pays_in_either_precision) {
  const auto name = [](const KernelTarget& target, std::int64_t kernel, std::int64_t stride, DType precision,
                       Direction direction = Direction::forward) {
    const Conv2d conv{64, 64, kernel, stride, kernel / 2};
    return make_kernel({direction, conv, 16, 16, 16, Layout::features, precision}, target)->name();
  };
  const KernelTarget baseline{InstructionSet::baseline, 1};
  for (const std::int64_t stride : {1, 2}) {
    EXPECT_EQ(name(baseline, 3, stride, DType::f32), "winograd by tiles");
    EXPECT_EQ(name(baseline, 3, stride, DType::bf16), "winograd by tiles");
  }
  EXPECT_EQ(name(baseline, 1, 1, DType::bf16), "direct");
  if (!runs_here(InstructionSet::avx512_bf16)) return;
  KernelTarget pairs{InstructionSet::avx512_bf16, 1};
  EXPECT_EQ(name(pairs, 3, 1, DType::f32), "winograd by tiles");
  EXPECT_EQ(name(pairs, 3, 1, DType::bf16), "winograd by tiles");
  EXPECT_EQ(name(pairs, 3, 2, DType::bf16), "direct, bf16 products");
  EXPECT_EQ(name(pairs, 1, 1, DType::bf16), "direct, bf16 products");
  for (const std::int64_t stride : {1, 2}) {
    EXPECT_EQ(name(pairs, 3, stride, DType::f32, Direction::backward_data), "winograd by tiles");
    EXPECT_EQ(name(pairs, 3, stride, DType::bf16, Direction::backward_data), "winograd by tiles, bf16 products");
    EXPECT_EQ(name(pairs, 3, stride, DType::bf16, Direction::backward_weight), "winograd by weights, bf16 products");
  }
  pairs.winograd_pairs = WinogradPairs::none;
  EXPECT_EQ(name(pairs, 3, 1, DType::bf16, Direction::backward_data), "winograd by tiles");
  pairs.winograd_pairs = WinogradPairs::all;
  EXPECT_EQ(name(pairs, 3, 1, DType::bf16), "winograd by tiles, bf16 products");
  EXPECT_EQ(name(pairs, 3, 2, DType::bf16), "winograd by tiles, bf16 products");
  if (!runs_here(InstructionSet::amx_bf16)) return;
  const KernelTarget tiles{InstructionSet::amx_bf16, 1};
  for (const Direction direction : {Direction::forward, Direction::backward_data, Direction::backward_weight}) {
    EXPECT_EQ(name(tiles, 3, 1, DType::bf16, direction), "direct, bf16 products in tiles");
    EXPECT_NE(name(tiles, 3, 1, DType::f32, direction), "direct");
  }
}

}  // namespace lockstep::cpu::convolution_engine_test
