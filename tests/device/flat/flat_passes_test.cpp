#include "device/flat/flat_passes.hpp"

#include <cmath>
#include <limits>

#include "support/device/flat_fixture.hpp"

namespace lockstep {
namespace {

class FlatPassesTest : public FlatTest {
 protected:
  void update(const SgdRule& rule, const std::vector<UpdateRun>& runs, const UpdateArrays& arrays,
              const StepRecord& record) {
    flat_.make_update(rule, runs, arrays)->run(record);
    device_->synchronize();
  }
};

TEST_P(FlatPassesTest, updates_as_many_values_as_there_are_gradients) {
  const UpdateArrays arrays{make({1, 1, 1}), make({2, 2, 2, 2, 2}), {make({0, 0, 0})}};
  update({0.9F, Momentum::classic}, {{0, 3, 0.5F}}, arrays, record(0.25F));
  EXPECT_EQ(read(arrays.values), (std::vector<float>{1.5F, 1.5F, 1.5F, 2.0F, 2.0F}));
  EXPECT_EQ(read(arrays.states[0]), (std::vector<float>{2.0F, 2.0F, 2.0F}));
}

TEST_P(FlatPassesTest, each_run_has_a_weight_decay_of_its_own) {
  const std::vector<float> twos(40, 2.0F);
  const std::vector<float> zeros(40, 0.0F);
  const UpdateArrays arrays{make(zeros), make(twos), {make(zeros)}};
  update({0.9F, Momentum::classic}, {{0, 16, 0.5F}, {16, 16, 0.0F}, {32, 8, 0.25F}}, arrays, record(0.5F));
  std::vector<float> expected(16, 1.5F);
  expected.insert(expected.end(), 16, 2.0F);
  expected.insert(expected.end(), 8, 1.75F);
  EXPECT_EQ(read(arrays.values), expected);
}

TEST_P(FlatPassesTest, updates_only_the_parts_that_are_asked_for) {
  const std::vector<float> zeros(64, 0.0F);
  const std::vector<UpdateRun> runs{{0, 24, 0.5F}, {32, 32, 0.25F}};
  const UpdateArrays whole{make(zeros), make(std::vector<float>(64, 2.0F)), {make(zeros)}};
  update({0.9F, Momentum::classic}, runs, whole, record(0.5F));
  const UpdateArrays arrays{make(zeros),
                            make(std::vector<float>(64, 2.0F)),
                            {make(std::vector<float>(32, 0.0F))},
                            std::vector<FlatPart>{{16, 16}, {48, 16}}};
  update({0.9F, Momentum::classic}, runs, arrays, record(0.5F));
  std::vector<float> values(64, 2.0F);
  std::vector<float> state;
  for (const FlatPart& part : *arrays.parts) {
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
      values[static_cast<std::size_t>(i)] = read(whole.values)[static_cast<std::size_t>(i)];
      state.push_back(read(whole.states[0])[static_cast<std::size_t>(i)]);
    }
  }
  EXPECT_EQ(read(arrays.values), values);
  EXPECT_EQ(read(arrays.states[0]), state);
}

TEST_P(FlatPassesTest, a_rank_without_parts_updates_nothing) {
  const UpdateArrays arrays{make({1, 1}), make({2, 2}), {make({0})}, std::vector<FlatPart>()};
  update({0.9F, Momentum::classic}, {{0, 2, 0.5F}}, arrays, record(0.5F));
  EXPECT_EQ(read(arrays.values), (std::vector<float>{2, 2}));
}

// A power of two: the scaled gradient comes back exactly.
TEST_P(FlatPassesTest, unscales_gradients_before_anything_else) {
  const std::vector<float> gradients{0.3F, -0.1F, 0.7F};
  std::vector<float> scaled = gradients;
  for (float& value : scaled) value *= 1024;
  const UpdateArrays plain{make(gradients), make({1.1F, 2.2F, 3.3F}), {make({0.1F, 0.2F, 0.3F})}};
  const UpdateArrays other{make(scaled), make({1.1F, 2.2F, 3.3F}), {make({0.1F, 0.2F, 0.3F})}};
  update({0.9F, Momentum::nesterov}, {{0, 3, 0.01F}}, plain, record(0.1F));
  update({0.9F, Momentum::nesterov}, {{0, 3, 0.01F}}, other, record(0.1F, 1.0F / 1024));
  EXPECT_EQ(read(other.values), read(plain.values));
  EXPECT_EQ(read(other.states[0]), read(plain.states[0]));
}

TEST_P(FlatPassesTest, a_step_that_is_not_applied_leaves_everything_as_it_was) {
  const UpdateArrays arrays{make({1}), make({2}), {make({3})}};
  const Tensor running = make({4});
  const StepRecord skipped = record(0.5F);
  for (const StepVerdict verdict :
       {StepVerdict::overflowed, StepVerdict::not_finite, StepVerdict::overflowed_unscaled}) {
    device_->write(std::vector<float>{static_cast<float>(verdict)}, skipped.at(step_verdict));
    update({0.9F, Momentum::classic}, {{0, 1, 0.5F}}, arrays, skipped);
    flat_.average(make({8}), 0.5F, running, skipped);
    EXPECT_EQ(read(arrays.values)[0], 2);
    EXPECT_EQ(read(arrays.states[0])[0], 3);
    EXPECT_EQ(read(running)[0], 4);
  }
}

// The norm is told in any case, of the true gradients.
TEST_P(FlatPassesTest, clips_the_norm_of_all_gradients_by_their_scale) {
  const Tensor gradients = make({12, 0, -16});
  const StepRecord small = record(1, 0.5F);
  flat_.make_clip({.norm = 10.5F}, {gradients, gradients, {}})->run(small);
  EXPECT_EQ(read(small.at(step_gradient_norm))[0], 10);
  EXPECT_EQ(read(small.at(step_gradient_scale))[0], 0.5F);
  const StepRecord large = record(1, 0.5F);
  flat_.make_clip({.norm = 2.5F}, {gradients, gradients, {}})->run(large);
  EXPECT_EQ(read(large.at(step_gradient_norm))[0], 10);
  EXPECT_NEAR(read(large.at(step_gradient_scale))[0], 0.5F / 4, 1e-7F);
}

TEST_P(FlatPassesTest, finds_the_norm_of_arrays_of_any_length) {
  for (const std::int64_t elements : {1, 3, 5, 102, 8193, 300'007, 4'000'003}) {
    const StepRecord one = record(1);
    const Tensor gradients = make(std::vector<float>(static_cast<std::size_t>(elements), 0.5F));
    flat_.make_clip({.norm = 1e9F}, {gradients, gradients, {}})->run(one);
    EXPECT_FLOAT_EQ(read(one.at(step_gradient_norm))[0], 0.5F * std::sqrt(static_cast<float>(elements))) << elements;
  }
}

// Squares of what fp32 holds need not fit into it.
TEST_P(FlatPassesTest, finds_norms_whose_squares_are_too_large_for_fp32) {
  const StepRecord one = record(1);
  const Tensor gradients = make({3e30F, 4e30F});
  flat_.make_clip({.norm = 1}, {gradients, gradients, {}})->run(one);
  EXPECT_FLOAT_EQ(read(one.at(step_gradient_norm))[0], 5e30F);
  EXPECT_FLOAT_EQ(read(one.at(step_gradient_scale))[0], 2e-31F);
}

// The limit is that of the true gradients, and NaN is no value within it.
TEST_P(FlatPassesTest, clips_each_value_before_the_norm) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const StepRecord one = record(1, 0.5F);
  const Tensor gradients = make({16, 0, -16, 5.5F, -8, infinity, nan});
  flat_.make_clip({.value = 4}, {gradients, gradients, {}})->run(one);
  std::vector<float> clipped = read(gradients);
  EXPECT_TRUE(std::isnan(clipped.back()));
  clipped.pop_back();
  EXPECT_EQ(clipped, (std::vector<float>{8, 0, -8, 5.5F, -8, 8}));
  EXPECT_EQ(read(one.at(step_gradient_scale))[0], 0.5F);
  const Tensor both = make({16, 0, -16, 8});
  flat_.make_clip({.norm = 1.5F, .value = 1}, {both, both, {}})->run(one);
  EXPECT_EQ(read(both), (std::vector<float>{2, 0, -2, 2}));
  EXPECT_FLOAT_EQ(read(one.at(step_gradient_norm))[0], std::sqrt(3.0F));
  EXPECT_NEAR(read(one.at(step_gradient_scale))[0], 0.5F * 1.5F / std::sqrt(3.0F), 1e-6F);
}

TEST_P(FlatPassesTest, clips_the_values_of_the_parts_that_are_asked_for) {
  for (const std::int64_t elements : {1, 3, 102, 8193}) {
    const Tensor gradients = make(std::vector<float>(static_cast<std::size_t>(elements + 32), 2));
    flat_.make_clip({.value = 1}, {gradients, gradients, {}, std::vector<FlatPart>{{0, 16}, {32, elements}}})
        ->run(record(1));
    std::vector<float> expected(static_cast<std::size_t>(elements + 32), 1);
    std::fill_n(expected.begin() + 16, 16, 2.0F);
    EXPECT_EQ(read(gradients), expected) << elements;
  }
}

TEST_P(FlatPassesTest, exchanges_arrays_of_any_length) {
  for (const std::int64_t elements : {1, 3, 5, 102, 8193}) {
    const Tensor one = make(std::vector<float>(static_cast<std::size_t>(elements), 1));
    const Tensor two = make(std::vector<float>(static_cast<std::size_t>(elements), 2));
    flat_.exchange(one, two);
    EXPECT_EQ(read(one), std::vector<float>(static_cast<std::size_t>(elements), 2)) << elements;
    EXPECT_EQ(read(two), std::vector<float>(static_cast<std::size_t>(elements), 1)) << elements;
  }
}

TEST_P(FlatPassesTest, copies_subtracts_and_fills_arrays_of_any_length) {
  for (const std::int64_t elements : {1, 3, 5, 102, 8193}) {
    std::vector<float> a(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i) * 0.375F;
    const Tensor from = make(a);
    const Tensor other = make(std::vector<float>(a.size(), 0.3F));
    std::vector<float> expected = a;
    for (float& value : expected) value = (value - 0.3F) * 0.7F;
    const Tensor apart = make(std::vector<float>(a.size(), 9.0F));
    flat_.subtract(from, other, 0.7F, apart);
    EXPECT_EQ(read(apart), expected) << elements;
    flat_.copy(from, apart);
    EXPECT_EQ(read(apart), a) << elements;
    flat_.subtract(from, other, 0.7F, other);
    EXPECT_EQ(read(other), expected) << elements;
    flat_.set(other, 0.25F);
    EXPECT_EQ(read(other), std::vector<float>(a.size(), 0.25F)) << elements;
    EXPECT_EQ(read(from), a) << elements;
  }
}

TEST_P(FlatPassesTest, moves_running_statistics_towards_the_batch) {
  const Tensor running = make({0.0F, 1.0F});
  flat_.average(make({4.0F, 3.0F}), 0.25F, running, record(0));
  EXPECT_EQ(read(running), (std::vector<float>{1.0F, 1.5F}));
}

TEST_P(FlatPassesTest, counts_infinities_and_nans_and_nothing_else) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(1000, std::numeric_limits<float>::max());
  values[1] = -std::numeric_limits<float>::max();
  values[2] = std::numeric_limits<float>::denorm_min();
  const Tensor counters = device_->make_persistent(flat_.overflow_counters(), DType::f32);
  const auto count = [&](const std::vector<float>& of, float limit, Accumulate accumulate) {
    flat_.count_overflows(make(of), limit, counters, accumulate);
    const Tensor sum = make({7.0F});
    flat_.sum_overflows(counters, sum);
    return read(sum)[0];
  };
  EXPECT_EQ(count(values, infinity, Accumulate::overwrite), 0.0F);
  values[0] = infinity;
  values[500] = -infinity;
  values[999] = nan;
  EXPECT_EQ(count(values, infinity, Accumulate::overwrite), 3.0F);
  EXPECT_EQ(count({nan, 0.0F, -nan}, infinity, Accumulate::add), 5.0F);
  EXPECT_EQ(count({1.0F, -2.0F, 1.9F, nan}, 2.0F, Accumulate::overwrite), 2.0F);
}

TEST_P(FlatPassesTest, counts_in_arrays_of_any_length) {
  for (const std::int64_t elements : {1, 3, 4, 5, 102, 100'007}) {
    std::vector<float> values(static_cast<std::size_t>(elements), 1.0F);
    for (std::size_t i = 0; i < values.size(); i += 7) values[i] = -2.0F;
    const Tensor counters = device_->make_persistent(flat_.overflow_counters(), DType::f32);
    const Tensor count = make({5.0F});
    for (int times = 0; times < 2; ++times) flat_.count_overflows(make(values), 2.0F, counters, Accumulate::add);
    flat_.sum_overflows(counters, count);
    EXPECT_EQ(read(count)[0], static_cast<float>(2 * ((elements + 6) / 7))) << elements;
  }
}

INSTANTIATE_TEST_SUITE_P(, FlatPassesTest, testing::ValuesIn(flat_devices()), flat_test_name);

}  // namespace
}  // namespace lockstep
