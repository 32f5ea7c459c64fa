#include "device/cpu/products/matmul.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "support/device/cpu_fixture.hpp"
#include "support/device/guarded_tensor.hpp"

namespace lockstep::cpu {
namespace {

struct Sizes {
  std::int64_t n, in, out;
};

// A linear layer with x [n, in], weight [out, in], dy [n, out] in guarded memory, and its products in double precision.
class Linear {
 public:
  Linear(InstructionSet set, int threads, const Sizes& sizes)
      : sizes_(sizes),
        x_values_(CpuFixture::values(sizes.n * sizes.in, 1)),
        weight_values_(CpuFixture::values(sizes.out * sizes.in, 2)),
        dy_values_(CpuFixture::values(sizes.n * sizes.out, 3)),
        cpu_(DType::f32, threads) {
    cpu_.context.lanes = lanes_of(set);
    matmul_ = std::make_unique<Matmul>(cpu_.context, set);
  }

  std::string forward() {
    const GuardedTensor x = filled(x_values_, {sizes_.n, sizes_.in});
    const GuardedTensor weight = filled(weight_values_, {sizes_.out * sizes_.in});
    const GuardedTensor y = empty({sizes_.n, sizes_.out});
    matmul_->linear_forward(x.tensor(), weight.tensor(), y.tensor());
    const auto x_at = [&](auto row, auto i) { return at(x_values_, sizes_.in, row, i); };
    const auto weight_at = [&](auto i, auto column) { return at(weight_values_, sizes_.in, column, i); };
    expect_near(y, product(sizes_.n, sizes_.out, sizes_.in, x_at, weight_at));
    return y.bytes();
  }
  std::string backward_data() {
    const GuardedTensor dy = filled(dy_values_, {sizes_.n, sizes_.out});
    const GuardedTensor weight = filled(weight_values_, {sizes_.out * sizes_.in});
    const GuardedTensor dx = empty({sizes_.n, sizes_.in});
    matmul_->linear_backward_data(dy.tensor(), weight.tensor(), dx.tensor());
    const auto dy_at = [&](auto row, auto o) { return at(dy_values_, sizes_.out, row, o); };
    const auto weight_at = [&](auto o, auto column) { return at(weight_values_, sizes_.in, o, column); };
    expect_near(dx, product(sizes_.n, sizes_.in, sizes_.out, dy_at, weight_at));
    return dx.bytes();
  }
  std::string backward_weight() {
    const GuardedTensor dweight = empty({sizes_.out * sizes_.in});
    backward_weight_into(dweight, Accumulate::overwrite);
    const auto dy_at = [&](auto row, auto n) { return at(dy_values_, sizes_.out, n, row); };
    const auto x_at = [&](auto n, auto column) { return at(x_values_, sizes_.in, n, column); };
    expect_near(dweight, product(sizes_.out, sizes_.in, sizes_.n, dy_at, x_at));
    return dweight.bytes();
  }
  std::vector<float> backward_weight_onto(float before, Accumulate accumulate) {
    const auto count = static_cast<std::size_t>(sizes_.out * sizes_.in);
    const GuardedTensor dweight = filled(std::vector<float>(count, before), {sizes_.out * sizes_.in});
    backward_weight_into(dweight, accumulate);
    return {dweight.tensor().as<float>(), dweight.tensor().as<float>() + count};
  }
  std::int64_t used_bytes() const { return cpu_.arena.used_bytes(); }

 private:
  static double at(const std::vector<float>& values, std::int64_t columns, std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  GuardedTensor empty(const Shape& shape) const { return {shape, DType::f32, Layout::plain, cpu_.context.lanes}; }
  GuardedTensor filled(const std::vector<float>& values, const Shape& shape) const {
    GuardedTensor tensor = empty(shape);
    pack_tensor(values, tensor.tensor(), cpu_.context.lanes);
    return tensor;
  }
  void backward_weight_into(const GuardedTensor& dweight, Accumulate accumulate) {
    const GuardedTensor x = filled(x_values_, {sizes_.n, sizes_.in});
    const GuardedTensor dy = filled(dy_values_, {sizes_.n, sizes_.out});
    matmul_->linear_backward_weight(x.tensor(), dy.tensor(), dweight.tensor(), accumulate);
  }
  // sum over `count` of left(row, i) * right(i, column).
  template <typename Left, typename Right>
  static std::vector<double> product(std::int64_t rows, std::int64_t columns, std::int64_t count, Left left,
                                     Right right) {
    std::vector<double> result(static_cast<std::size_t>(rows * columns));
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t i = 0; i < count; ++i)
          result[static_cast<std::size_t>(r * columns + c)] += left(r, i) * right(i, c);
    return result;
  }
  void expect_near(const GuardedTensor& result, const std::vector<double>& expected) {
    EXPECT_LE(cpu_.error(result.tensor(), expected), 1e-5);
    EXPECT_TRUE(result.is_intact());
  }

  Sizes sizes_;
  std::vector<float> x_values_, weight_values_, dy_values_;
  CpuFixture cpu_;
  std::unique_ptr<Matmul> matmul_;
};

class MatmulTest : public testing::TestWithParam<InstructionSet> {};

TEST_P(MatmulTest, agrees_with_plain_loops_with_the_same_bits_on_any_number_of_threads) {
  for (const Sizes& sizes : {Sizes{1, 1, 1}, Sizes{5, 84, 10}, Sizes{64, 400, 120}, Sizes{3, 33, 1000}, Sizes{7, 9, 17},
                             Sizes{200, 64, 16}}) {
    SCOPED_TRACE(fmt::format("{} samples, {} inputs, {} outputs", sizes.n, sizes.in, sizes.out));
    Linear alone(GetParam(), 1, sizes);
    for (const int threads : {1, 2, 3}) {
      Linear layer(GetParam(), threads, sizes);
      EXPECT_TRUE(layer.forward() == alone.forward());
      EXPECT_TRUE(layer.backward_data() == alone.backward_data());
      EXPECT_TRUE(layer.backward_weight() == alone.backward_weight());
    }
  }
}

TEST_P(MatmulTest, adds_a_parts_gradient_exactly_once) {
  Linear layer(GetParam(), 2, {4, 20, 10});
  const std::vector<float> alone = layer.backward_weight_onto(0.5F, Accumulate::overwrite);
  const std::vector<float> added = layer.backward_weight_onto(0.5F, Accumulate::add);
  for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_EQ(added[i], alone[i] + 0.5F);
}

TEST_P(MatmulTest, takes_nothing_from_the_arena_for_good) {
  Linear layer(GetParam(), 1, {4, 20, 10});
  const std::int64_t before = layer.used_bytes();
  layer.forward();
  EXPECT_EQ(layer.used_bytes(), before);
}

INSTANTIATE_TEST_SUITE_P(sets, MatmulTest, testing::ValuesIn(sets_here()),
                         [](const auto& test) { return word_for(test.param); });

}  // namespace
}  // namespace lockstep::cpu
