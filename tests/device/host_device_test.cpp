#include "device/host_device.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::host_device_test {

// What the bits of a binary floating-point number mean, by IEEE 754.
double meaning(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const auto fraction = static_cast<double>(bits & ((1U << fraction_bits) - 1));
  const int exponent = static_cast<int>((bits >> fraction_bits) & ((1U << exponent_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> (exponent_bits + fraction_bits)) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(1 + std::ldexp(fraction, -fraction_bits), exponent - bias);
}

struct Format {
  const char* name;
  int exponent_bits;
  int fraction_bits;
  float (*from)(std::uint16_t);
  std::uint16_t (*to)(float);
};

void PrintTo(const Format& format, std::ostream* stream) { *stream << format.name; }

class HalfPrecisionTest : public testing::TestWithParam<Format> {};

TEST_P(HalfPrecisionTest, all_65536_bit_patterns_mean_what_they_should_and_come_back) {
  const Format& format = GetParam();
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const double expected = meaning(bits, format.exponent_bits, format.fraction_bits);
    const float value = format.from(static_cast<std::uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(format.from(format.to(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, static_cast<float>(expected)) << bits;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    ASSERT_EQ(format.to(value), bits);
  }
}

TEST_P(HalfPrecisionTest, rounds_to_nearest_and_ties_to_even_between_all_neighbours) {
  const auto& [name, exponent_bits, fraction_bits, from, to] = GetParam();
  const std::uint32_t infinity = ((1U << exponent_bits) - 1) << fraction_bits;
  for (std::uint32_t below = 0; below + 1 < infinity; ++below) {
    const float low = from(static_cast<std::uint16_t>(below));
    const float high = from(static_cast<std::uint16_t>(below + 1));
    const float middle = low + (high - low) / 2;
    for (const std::uint32_t sign : {0U, 0x8000U}) {
      const auto signed_value = [&](float value) { return sign == 0 ? value : -value; };
      ASSERT_EQ(to(signed_value(middle)), sign | (below % 2 == 0 ? below : below + 1)) << below;
      ASSERT_EQ(to(signed_value(std::nextafter(middle, low))), sign | below) << below;
      ASSERT_EQ(to(signed_value(std::nextafter(middle, high))), sign | (below + 1)) << below;
    }
  }
}

TEST_P(HalfPrecisionTest, what_is_too_large_becomes_infinite) {
  const auto& [name, exponent_bits, fraction_bits, from, to] = GetParam();
  const std::uint32_t infinity = ((1U << exponent_bits) - 1) << fraction_bits;
  const float largest = from(static_cast<std::uint16_t>(infinity - 1));
  const float beyond = largest + (largest - from(static_cast<std::uint16_t>(infinity - 2))) / 2;  // rounds to 2^n
  EXPECT_EQ(to(std::nextafter(beyond, 0.0F)), infinity - 1);
  EXPECT_EQ(to(beyond), infinity);
  EXPECT_EQ(to(std::numeric_limits<float>::infinity()), infinity);
  EXPECT_EQ(to(-std::numeric_limits<float>::max()), 0x8000U | infinity);
}

INSTANTIATE_TEST_SUITE_P(, HalfPrecisionTest,
                         testing::Values(Format{"f16", 5, 10, from_f16, to_f16},
                                         Format{"bf16", 8, 7, from_bf16, to_bf16}),
                         [](const auto& test) { return test.param.name; });

TEST(NearestWholeTest, rounds_as_the_library_does_over_its_whole_range) {
  for (int exponent = -3; exponent < 63; ++exponent) {
    for (const double fraction : {1.0, 1.25, 1.5, 1.75, 1 + 0x1p-24, 2 - 0x1p-23, 1.0000305175, 1.9999847412}) {
      for (const double sign : {-1.0, 1.0}) {
        const double value = sign * std::ldexp(fraction, exponent);
        ASSERT_EQ(round_to_int64(value), std::llrint(value)) << value;
      }
    }
  }
  for (const double value : {0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0x1p31 + 0.5, 0x1p31 - 0.5, -0x1p31 - 0.5, 0x1p51}) {
    EXPECT_EQ(round_to_int64(value), std::llrint(value)) << value;
  }
}

}  // namespace lockstep::host_device_test
