#include "base/text/printable.hpp"

#include <gtest/gtest.h>

#include "base/log.hpp"
#include "base/random.hpp"
#include "base/text/utf8.hpp"

namespace lockstep::printable_test {

TEST(PrintableTest, letters_of_all_scripts_stay) {
  for (const char* text : {"", "plain words, 100 %", "Ärmel", "猫", "کلاس", "🐈", "a\\b"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_lines(text), text);
  }
}

TEST(PrintableTest, what_steers_a_terminal_is_shown_by_its_number) {
  EXPECT_EQ(printable("\x1b[31mred\x1b]0;title\x07"), "\\x1b[31mred\\x1b]0;title\\x07");
  EXPECT_EQ(printable("one\ntwo\r\tthree\x7f"), "one\\x0atwo\\x0d\\x09three\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\u009b31m")
      << "C1: the same as ESC [";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(PrintableTest, what_shows_other_words_than_there_are_is_shown_by_its_number) {
  EXPECT_EQ(printable("cat\u202Egnp.exe"), "cat\\u202egnp.exe");
  EXPECT_EQ(printable("\u2066\u2069\u200F\u061C\u2028"), "\\u2066\\u2069\\u200f\\u061c\\u2028");
}

TEST(PrintableTest, bytes_that_are_no_text_are_shown_by_their_numbers) {
  EXPECT_EQ(printable("caf\xE9!"), "caf\\xe9!");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xC0\x9B"), "\\xc0\\x9b") << "an overlong ESC";
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
  EXPECT_EQ(printable("cut \xE7\x8C"), "cut \\xe7\\x8c");
}

// A folder "a\x0a" and one with a new line in its name were shown alike, as were U+009B and the byte 9B.
TEST(PrintableTest, names_stay_different) {
  EXPECT_EQ(printable_name("a\\x0a"), "a\\\\x0a");
  EXPECT_EQ(printable_name("a\n"), "a\\x0a");
  EXPECT_EQ(printable_name("\\\n"), "\\\\\\x0a");
  EXPECT_EQ(printable_name("\xC2\x9B"), "\\u009b");
  EXPECT_EQ(printable_name("\x9B"), "\\x9b");
  EXPECT_EQ(printable_name("猫 'x'"), "猫 'x'");
}

TEST(PrintableTest, tables_keep_their_lines) { EXPECT_EQ(printable_lines("a\tb\n\x1b[2J"), "a\tb\n\\x1b[2J"); }

TEST(PrintableTest, whatever_goes_in_no_control_character_comes_out) {
  for (std::uint64_t round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const auto draws = philox(3, i, round);
      text += static_cast<char>(draws[1] % 2 == 0 ? draws[0] : draws[0] % 0x40 + 0x80 + draws[2] % 2 * 0x40);
    }
    std::string shown = printable(text);
    for (std::string_view rest = shown; !rest.empty();) {
      const Utf8Character character = first_character(rest);
      ASSERT_TRUE(character.code.has_value()) << round;
      ASSERT_GE(static_cast<unsigned>(*character.code), 0x20U) << round;
      ASSERT_FALSE(*character.code >= 0x7F && *character.code < 0xA0) << round;
      rest.remove_prefix(character.bytes);
    }
  }
}

// Escape sequences in the names of classes reached the terminal, and a new line in one passed for a line of the log.
TEST(LogTest, nothing_that_is_printed_steers_the_terminal_or_makes_a_line_of_its_own) {
  const std::string name = "cat\x1b[2J\n[rank 0, node]  all is well";
  const std::string shown = "cat\\x1b[2J\\x0a[rank 0, node]  all is well\n";
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  log::info("class {}", name);
  log::warning("class {}", name);
  log::plain("a table\n  of \x1b[31mlines");
  const std::string printed = testing::internal::GetCapturedStdout();
  const std::string warned = testing::internal::GetCapturedStderr();
  EXPECT_EQ(printed, log::prefix() + "  class " + shown + "a table\n  of \\x1b[31mlines\n");
  EXPECT_EQ(warned, log::prefix() + "  class " + shown);
}

}  // namespace lockstep::printable_test
