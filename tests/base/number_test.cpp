#include "base/text/number.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "base/clock.hpp"
#include "support/messages.hpp"

namespace lockstep::number_test {

constexpr NumberRange<int> any_int{-1'000'000, 1'000'000};
constexpr NumberRange<std::int64_t> any_count{std::numeric_limits<std::int64_t>::min(),
                                              std::numeric_limits<std::int64_t>::max()};
constexpr NumberRange<std::uint64_t> any_seed{0, std::numeric_limits<std::uint64_t>::max()};
constexpr NumberRange<float> any_float{std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()};
constexpr NumberRange<double> any_double{std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};

TEST(NumberTest, whole_numbers_are_read_to_the_last_digit) {
  EXPECT_EQ(parse_number("0", any_int), 0);
  EXPECT_EQ(parse_number("-12", any_int), -12);
  EXPECT_EQ(parse_number("18446744073709551615", any_seed), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_number("9007199254740993", any_count), 9007199254740993);  // 2^53 + 1, which is no double
  EXPECT_EQ(parse_number("-9223372036854775808", any_count), std::numeric_limits<std::int64_t>::min());
}

// 010 was read as eight.
TEST(NumberTest, leading_zeros_are_decimal) {
  EXPECT_EQ(parse_number("010", any_int), 10);
  EXPECT_EQ(parse_number("-007", any_int), -7);
  EXPECT_EQ(parse_number("000", any_int), 0);
  EXPECT_EQ(parse_number("00.50", any_double), 0.5);
}

TEST(NumberTest, a_whole_number_may_have_an_exponent_or_decimals) {
  EXPECT_EQ(parse_number("1e5", any_int), 100'000);
  EXPECT_EQ(parse_number("1.5E+3", any_int), 1500);
  EXPECT_EQ(parse_number("2.0", any_int), 2);
  EXPECT_EQ(parse_number("1200e-2", any_int), 12);
  EXPECT_EQ(parse_number("1e19", any_seed), 10'000'000'000'000'000'000U);
  EXPECT_EQ(parse_number("0e99999999999999999999", any_int), 0);
}

TEST(NumberTest, what_is_not_whole_is_no_whole_number) {
  for (const char* text : {"1.5", "1e-1", "0.1", "12e-1", "1e-99999999999999999999"}) {
    EXPECT_EQ(parse_number(text, any_int), std::nullopt) << text;
  }
}

// nan passed every check of a range; 2^64 and -1 became 2^64 - 1; 0x10 was sixteen.
TEST(NumberTest, whatever_else_there_may_be_in_a_text_is_no_number) {
  for (const char* text :
       {"",      " ",  "nan",   "NaN", "-nan",  "nan(1)", "inf",  "-inf", "infinity", "0x10", "0x1p3", "1_000", "1,000",
        "1'0",   " 1", "1 ",    "1\n", "\t1",   "+1",     "--1",  "-",    ".",        "e5",   "1e",    "1e+",   "1e5.0",
        "1.2.3", "1f", "12abc", "ten", "1e5e5", "0b1",    "1e 5", "١",    "$1",       "1%",   "1-",    "- 1"}) {
    EXPECT_EQ(parse_number(text, any_int), std::nullopt) << text;
    EXPECT_EQ(parse_number(text, any_count), std::nullopt) << text;
    EXPECT_EQ(parse_number(text, any_seed), std::nullopt) << text;
    EXPECT_EQ(parse_number(text, any_float), std::nullopt) << text;
    EXPECT_EQ(parse_number(text, any_double), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number(std::string_view("1\0", 2), any_int), std::nullopt);
}

TEST(NumberTest, what_the_type_cannot_hold_is_refused) {
  EXPECT_EQ(parse_number("18446744073709551616", any_seed), std::nullopt);
  EXPECT_EQ(parse_number("-1", any_seed), std::nullopt);
  EXPECT_EQ(parse_number("1e20", any_seed), std::nullopt);
  EXPECT_EQ(parse_number("9223372036854775808", any_count), std::nullopt);
  EXPECT_EQ(parse_number("1e999999999999", any_count), std::nullopt);
  EXPECT_EQ(parse_number("1e400", any_double), std::nullopt);
  EXPECT_EQ(parse_number("-1e400", any_double), std::nullopt);
  EXPECT_EQ(parse_number("1e39", any_float), std::nullopt);
  EXPECT_EQ(parse_number(std::string(400, '9'), any_double), std::nullopt);
}

TEST(NumberTest, a_fraction_below_all_others_is_zero) {
  EXPECT_EQ(parse_number("1e-400", any_double), 0);
  EXPECT_EQ(parse_number("1e-60", any_float), 0);
  EXPECT_EQ(parse_number("0." + std::string(400, '0') + "1", any_double), 0);
  EXPECT_EQ(parse_number("5e-324", any_double), std::numeric_limits<double>::denorm_min());
}

TEST(NumberTest, the_ends_of_a_range_are_in_it_unless_the_lower_one_is_excluded) {
  const NumberRange<int> digits{0, 9};
  EXPECT_EQ(parse_number("0", digits), 0);
  EXPECT_EQ(parse_number("9", digits), 9);
  EXPECT_EQ(parse_number("10", digits), std::nullopt);
  EXPECT_EQ(parse_number("-1", digits), std::nullopt);
  const NumberRange<double> rates{0, 2, LeastIs::excluded};
  EXPECT_EQ(parse_number("0", rates), std::nullopt);
  EXPECT_EQ(parse_number("1e-400", rates), std::nullopt);
  EXPECT_EQ(parse_number("1e-300", rates), 1e-300);
  EXPECT_EQ(parse_number("2", rates), 2);
  EXPECT_EQ(parse_number("0.9999", NumberRange<float>{0, 0.9999F}), 0.9999F);
}

// Two roundings, first to a long double, would differ from the compiler's one in the last bit of some.
TEST(NumberTest, fractions_have_the_bits_of_the_same_text_in_a_source) {
  EXPECT_EQ(parse_number("0.9", any_float), 0.9F);
  EXPECT_EQ(parse_number("5e-4", any_float), 5e-4F);
  EXPECT_EQ(parse_number(".2", any_double), 0.2);
  EXPECT_EQ(parse_number("0.0010549", any_double), 0.0010549);
  EXPECT_EQ(parse_number("0.1673650105354723", any_double), 0.1673650105354723);
}

// Trainings of earlier versions must be repeated bit for bit.
TEST(NumberTest, usual_values_have_the_bits_that_a_long_double_in_between_gives) {
  for (int i = 0; i <= 100'000; ++i) {
    const std::string text = fmt::format("{}.{:05}", i / 100'000, i % 100'000);
    const long double between = std::strtold(text.c_str(), nullptr);
    ASSERT_EQ(parse_number(text, any_float), static_cast<float>(between)) << text;
    ASSERT_EQ(parse_number(text, any_double), static_cast<double>(between)) << text;
  }
}

TEST(NumberTest, what_is_written_is_read_back) {
  EXPECT_EQ(number_text(0.9F), "0.9");
  EXPECT_EQ(number_text(5e-4F), "0.0005");
  EXPECT_EQ(number_text(0.0), "0");
  EXPECT_EQ(number_text(300.0), "300");
  EXPECT_EQ(number_text(std::int64_t{10'000}), "10000");
  for (const double number : {0.1, 1.0 / 3, 1e9, 2.5e-7})
    EXPECT_EQ(parse_number(number_text(number), any_double), number);
}

TEST(NumberTest, the_words_name_the_range) {
  expect_message(not_a_number_message("nan", NumberRange<float>{0, 0.9999F}), {"nan"});
  expect_message(not_a_number_message("1.5", NumberRange<int>{1, 256}), {"1.5", "256"});
  expect_message(not_a_number_message("0", NumberRange<double>{0, 1e9, LeastIs::excluded}), {"0"});
  expect_message(not_a_number_message("-1", any_seed), {"-1"});
}

TEST(DurationTest, is_a_number_and_a_unit) {
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("10min"), 600);
  EXPECT_EQ(parse_duration("1.5h"), 5400);
  EXPECT_EQ(parse_duration("1e3s"), 1000);
  EXPECT_EQ(parse_duration("1e9s"), 1e9);
}

TEST(DurationTest, whatever_else_is_none) {
  for (const char* text : {"", "90", "s", "nan", "nans", "nanmin", "infh", "1e400h", "0s", "-1h", "0x10s", "1 h", "+1h",
                           "1e9min", "1h30min", "1e-400h"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

}  // namespace lockstep::number_test
