#include "slurm/submit/shell_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/text/printable.hpp"
#include "support/program.hpp"

namespace lockstep::shell_text_test {

TEST(ShellTextTest, a_word_is_read_back_as_it_was) {
  for (const std::string text : {"plain", "two words", "it's", "''", "\"", "$(touch x)", "`x`", "a;b", "new\nline",
                                 "\\", "*", "~", "!x", "", "\xc3\xa4", "\x1b[2J'\\\n1", "\xe2\x80\xae", "\x7f\r"}) {
    const ProgramResult result = run_program({"bash", "-c", "printf %s " + shell_word(text)});
    EXPECT_EQ(result.output, text);
    EXPECT_EQ(printable_lines(shell_word(text)), shell_word(text)) << "or --dry-run would show another script";
  }
}

TEST(ShellTextTest, names_and_plain_words) {
  EXPECT_TRUE(is_plain_word("data/cifar-10_v1.2:a@b+c"));
  for (const char* odd : {"", "a b", "a=b", "a,b", "a'b", "$a", "a\n", "\xc3\xa4", "*", "a%b"}) {
    EXPECT_FALSE(is_plain_word(odd)) << odd;
  }
  for (const char* plain : {"", " ", "a b", "\t-x A=1,2 ~/b:c@d+e%_f.g-h/0^"})
    EXPECT_TRUE(is_plain_text(plain)) << plain;
  for (const char odd : std::string_view("\n\r\v\f\x7f\x80!\"#$&'()*;<>?[\\]`{|}")) {
    EXPECT_FALSE(is_plain_text(std::string(1, odd))) << odd;
  }
}

TEST(ShellTextTest, a_variable_is_named_whole) {
  for (const char* script : {"echo $AB", "AB", "\"${AB}\"x", "ABC AB", "eval echo \\$AB"}) {
    EXPECT_TRUE(names_variable(script, "AB")) << script;
  }
  for (const char* script : {"", "A", "ABC", "XAB", "AB_", "AB1 2AB"})
    EXPECT_FALSE(names_variable(script, "AB")) << script;
}

}  // namespace lockstep::shell_text_test
