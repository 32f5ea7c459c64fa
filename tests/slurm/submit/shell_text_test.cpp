#include "slurm/submit/shell_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/text/printable.hpp"
#include "support/program.hpp"

namespace lockstep {
namespace {

using Place = ShellReader::Place;

Place place_after(std::string_view script) {
  ShellReader reader;
  reader.read(script);
  return reader.place();
}

std::optional<std::string> variable_after(std::string_view script) {
  ShellReader reader;
  reader.read(script);
  return reader.put_variable("V");
}

std::string word_after(std::string_view script, std::string_view word) {
  ShellReader reader;
  reader.read(script);
  return reader.put(word);
}

TEST(ShellTextTest, a_word_is_read_back_as_it_was) {
  for (const std::string text : {"plain", "two words", "it's", "''", "\"", "$(touch x)", "`x`", "a;b", "new\nline",
                                 "\\", "*", "~", "!x", "", "\xc3\xa4", "\x1b[2J'\\\n1", "\xe2\x80\xae", "\x7f\r"}) {
    const ProgramResult result = run_program({"bash", "-c", "printf %s " + shell_word(text)});
    EXPECT_EQ(result.output, text);
    EXPECT_EQ(printable_lines(shell_word(text)), shell_word(text)) << "or --dry-run would show another script";
  }
}

TEST(ShellTextTest, places_are_told_apart) {
  for (const char* plain : {"", "a b ", "a 'b' ", "a \"b\" ", "a # it's\n", "a#b", "\\'", "a\\ #b", R"("\"" )", "${x} ",
                            "a && (b; c) ", "a \\\n# it's \"\n", "a $x ", "{ a; } ", "'#' "}) {
    EXPECT_EQ(place_after(plain), Place::plain) << plain;
  }
  for (const char* single : {"'", "a 'b", "\"'\"'", "'\"", "'\\", "'$"}) {
    EXPECT_EQ(place_after(single), Place::single_quotes) << single;
  }
  for (const char* both : {"\"", "a \"b", "'\"'\"", "\"'", "\"# ", R"("\")", "\"${x}", "\"$x "}) {
    EXPECT_EQ(place_after(both), Place::double_quotes) << both;
  }
  for (const char* comment : {"#", "a # it's", "a;# $(", "a\n#"}) EXPECT_EQ(place_after(comment), Place::comment);
  for (const char* unclear : {"$(", "a $(b) ", "`",  "\"`", "\"$(", "${x:-", "\"${x#", "((", "$((1)) ", "cat <<",
                              "$'", "$\"",     "a[", "\\",  "\"\\", "$",     "\"$",    "${", "${x",     "$["}) {
    EXPECT_EQ(place_after(unclear), Place::unclear) << unclear;
  }
}

TEST(ShellTextTest, what_stands_for_a_value_depends_on_the_place) {
  EXPECT_EQ(variable_after("a "), "\"${V}\"");
  EXPECT_EQ(variable_after("a '"), "'\"${V}\"'");
  EXPECT_EQ(variable_after("a \""), "${V}");
  EXPECT_EQ(variable_after("$(a "), std::nullopt);
  EXPECT_EQ(variable_after("$"), std::nullopt);
  EXPECT_EQ(word_after("a ", "2"), "'2'");
  EXPECT_EQ(word_after("a '", "2"), "2");
  EXPECT_EQ(word_after("a \"", "2"), "2");
  EXPECT_EQ(word_after("a \"$x", "2"), "\"'2'\"") << "or it would be a part of the variable's name";
  EXPECT_EQ(word_after("$(a ", "2"), "2");
}

TEST(ShellTextTest, names_and_plain_words) {
  EXPECT_TRUE(is_plain_word("data/cifar-10_v1.2:a@b+c"));
  for (const char* odd : {"", "a b", "a=b", "a,b", "a'b", "$a", "a\n", "\xc3\xa4", "*", "a%b"}) {
    EXPECT_FALSE(is_plain_word(odd)) << odd;
  }
  EXPECT_TRUE(is_variable_name("_a1"));
  for (const char* odd : {"", "1a", "a-b", "a.b", "a b", "\xc3\xa4"}) EXPECT_FALSE(is_variable_name(odd)) << odd;
}

TEST(ShellTextTest, a_variable_is_named_whole) {
  for (const char* script : {"echo $AB", "AB", "\"${AB}\"x", "ABC AB", "eval echo \\$AB"}) {
    EXPECT_TRUE(names_variable(script, "AB")) << script;
  }
  for (const char* script : {"", "A", "ABC", "XAB", "AB_", "AB1 2AB"})
    EXPECT_FALSE(names_variable(script, "AB")) << script;
}

}  // namespace
}  // namespace lockstep
