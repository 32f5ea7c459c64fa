#include "device/flat/fixed_point.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/random.hpp"
#include "device/cpu/cpu_device.hpp"
#include "support/device/flat_fixture.hpp"

namespace lockstep::fixed_point_test {

constexpr int terms = 12;
constexpr FixedPoint form = fixed_point_for(terms);

// Values of all sizes that gradients have.
std::vector<float> noise(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = philox(seed, 0, i);
    values[i] = std::ldexp(uniform(bits[0]) - 0.5F, static_cast<int>(bits[1] % 40) - 30);
  }
  return values;
}

// Whole numbers can be looked at where they lie in host memory.
std::vector<TestDevice> host_devices() {
  std::vector<TestDevice> devices = flat_devices();
  std::erase_if(devices, [](const TestDevice& device) { return device.name == "cuda"; });
  return devices;
}

class FixedPointTest : public FlatTest {
 protected:
  std::vector<std::int64_t> sum(const std::vector<std::vector<float>>& values) {
    const Tensor sums = device_->make_persistent(std::ssize(values.front()), DType::i64);
    auto* const first = sums.as<std::int64_t>();
    std::fill_n(first, values.front().size(), 99);
    for (std::size_t term = 0; term < values.size(); ++term) {
      flat_.sum_fixed(make(values[term]), form, sums, term == 0 ? Accumulate::overwrite : Accumulate::add);
    }
    return {first, first + values.front().size()};
  }

  std::vector<float> values_of(const std::vector<std::int64_t>& sums) {
    const Tensor from = device_->make_persistent(std::ssize(sums), DType::i64);
    std::ranges::copy(sums, from.as<std::int64_t>());
    const Tensor into = make(std::vector<float>(sums.size(), 77.0F));
    flat_.values_of_fixed(from, into);
    return read(into);
  }
};

TEST_P(FixedPointTest, sums_are_the_same_in_any_order_and_grouping) {
  constexpr std::size_t count = 1001;
  std::vector<std::vector<float>> values;
  for (int term = 0; term < terms; ++term) values.push_back(noise(count, static_cast<std::uint64_t>(term)));
  const std::vector<std::int64_t> expected = sum(values);
  std::mt19937 random(1);
  for (int round = 0; round < 5; ++round) {
    std::ranges::shuffle(values, random);
    EXPECT_EQ(sum(values), expected);
    std::vector<std::int64_t> halves = sum({values.begin(), values.begin() + 5});
    const std::vector<std::int64_t> rest = sum({values.begin() + 5, values.end()});
    for (std::size_t i = 0; i < count; ++i) halves[i] += rest[i];
    EXPECT_EQ(halves, expected);
  }
}

TEST_P(FixedPointTest, a_sum_is_as_near_as_its_step) {
  constexpr std::size_t count = 1001;
  std::vector<std::vector<float>> values;
  std::vector<double> expected(count);
  for (int term = 0; term < terms; ++term) {
    values.push_back(noise(count, static_cast<std::uint64_t>(term)));
    for (std::size_t i = 0; i < count; ++i) expected[i] += static_cast<double>(values.back()[i]);
  }
  const std::vector<float> result = values_of(sum(values));
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_NEAR(result[i], expected[i], terms * 0x1p-41 + std::abs(expected[i]) * 0x1p-24) << i;
  }
}

TEST_P(FixedPointTest, as_many_of_the_largest_as_are_meant_fit) {
  const float largest = std::nextafter(form.limit, 0.0F);
  const std::vector<float> result = values_of(sum(std::vector<std::vector<float>>(terms, {largest})));
  EXPECT_FLOAT_EQ(result[0], terms * largest);
}

TEST_P(FixedPointTest, what_does_not_fit_adds_nothing_and_is_counted) {
  const std::vector<float> values{1, form.limit, -form.limit, HUGE_VALF, -HUGE_VALF, std::nanf(""), -1};
  EXPECT_EQ(sum({values}), (std::vector<std::int64_t>{std::int64_t{1} << 40, 0, 0, 0, 0, 0, -(std::int64_t{1} << 40)}));
  const Tensor counters = device_->make_persistent(flat_.overflow_counters(), DType::f32);
  flat_.count_overflows(make(values), form.limit, counters, Accumulate::overwrite);
  const Tensor count = make({0});
  flat_.sum_overflows(counters, count);
  EXPECT_EQ(read(count)[0], 5);
}

TEST_P(FixedPointTest, every_device_and_number_of_threads_gives_the_same_bits) {
  const std::vector<float> values = noise(100'003, 1);
  const std::vector<std::int64_t> sums = sum({values, values});
  for (const int threads : {1, 3}) {
    const std::unique_ptr<Device> cpu = cpu::open_cpu_device({.threads = threads});
    const Tensor from = cpu->make_persistent(std::ssize(values), DType::f32);
    const Tensor into = cpu->make_persistent(std::ssize(values), DType::i64);
    cpu->write(values, from);
    cpu->flat().sum_fixed(from, form, into, Accumulate::overwrite);
    cpu->flat().sum_fixed(from, form, into, Accumulate::add);
    const auto* const first = into.as<std::int64_t>();
    EXPECT_EQ(std::vector<std::int64_t>(first, first + values.size()), sums);
  }
}

INSTANTIATE_TEST_SUITE_P(, FixedPointTest, testing::ValuesIn(host_devices()), flat_test_name);

}  // namespace lockstep::fixed_point_test
