#include "slurm/submit/shell_reader.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Place = ShellReader::Place;

ShellReader after(std::string_view script) {
  ShellReader reader;
  reader.read(script);
  return reader;
}

TEST(ShellReaderTest, places_are_told_apart) {
  for (const char* unquoted : {"",
                               "a b ",
                               "a 'b' ",
                               "a \"b\" ",
                               "a # it's\n",
                               "a#b",
                               "\\'",
                               "a\\ #b",
                               R"("\"" )",
                               "${x} ",
                               "a && (b; c) ",
                               "a \\\n# it's \"\n",
                               "a $x ",
                               "{ a; } ",
                               "'#' ",
                               "$(a) ",
                               "$(a \"$(b)\" 'c)') ",
                               "((a > (1))) ",
                               "`a \\` \"` ",
                               "a[0] ",
                               "ls a[\n",
                               "$'a\\'b' ",
                               "a <<<x ",
                               "case a in b) c ;; esac ",
                               "$(a)#'\n'",
                               "#",
                               "a # it's",
                               "a;# $("}) {
    EXPECT_EQ(after(unquoted).place(), Place::unquoted) << unquoted;
  }
  for (const char* single : {"'", "a 'b", "\"'\"'", "'\"", "'\\", "'$", "$(a '"}) {
    EXPECT_EQ(after(single).place(), Place::single_quotes) << single;
  }
  for (const char* both : {"\"", "a \"b", "'\"'\"", "\"'", "\"# ", R"("\")", "\"${x}", "\"$x ", "\"$(a) ", "$(a \"",
                           "\"$(a \"", "x=$((1 + (2))) \"", "cat <<<\"", "$(a)#\"", "f() { a \""}) {
    EXPECT_EQ(after(both).place(), Place::double_quotes) << both;
  }
  for (const char* other :
       {"`",  "\"`",  "${x:-", "\"${x#", "((", "$((1)+", "((a) + \"", "cat <<", "cat <<E\n\"", "$'",
        "a[", "a[\"", "\\",    "\"\\",   "$",  "\"$",    "${",        "${x",    "$[",          "${x:-'a'} "}) {
    EXPECT_EQ(after(other).place(), Place::other) << other;
  }
}

TEST(ShellReaderTest, commands_that_evaluate_are_known_up_to_their_ends) {
  for (const char* evaluated : {"[[ ",
                                "if [[ a && ",
                                "[[ (a || ",
                                "[[ a =~ [[:x:]] && ",
                                "[[ a\n",
                                "[ ",
                                "test -n ",
                                "eval ",
                                "X=1 eval a ",
                                "! command e'v'al ",
                                "\\eval ",
                                "eval >a ",
                                ">a eval ",
                                "eval &>a ",
                                "eval >|a ",
                                "eval 2>&1 ",
                                "f() { eval ",
                                "for ((i = 0; i < 1; ++i)) do eval ",
                                "eval \"$(echo ",
                                "let ",
                                "declare -i ",
                                "printf -v",
                                "printf  -v ",
                                "wait -n -p ",
                                "bash -c ",
                                "srun /bin/bash -o errexit -ec ",
                                "bash <<<",
                                "ssh a ",
                                "a >&",
                                "a >&  ",
                                "a 1>&1",
                                "a=([",
                                "export PS4=",
                                "x; trap "}) {
    EXPECT_TRUE(after(evaluated).is_evaluated()) << evaluated;
    EXPECT_TRUE(after(std::string(evaluated) + "\"").is_evaluated()) << evaluated;
  }
  for (const char* plain : {"", "echo ", "[[ a ]] && ", "[ a ]; ", "if [[ a -gt 1 ]]; then b ", "eval a\n", "eval a | ",
                            "(eval a) ", "echo \"eval ", "echo '[[ ' 'let ", "echo \"[a] ", "echo [a] ", "printf ",
                            "printf %s -v ", "bash a.sh ", "export a=", "x=$(let a) ", "python --test ", "# eval\n"}) {
    EXPECT_FALSE(after(plain).is_evaluated()) << plain;
  }
}

TEST(ShellReaderTest, what_may_evaluate_variables_is_remembered) {
  for (const char* evaluates : {"((a))\n", "echo $((a))\n", "echo $[a]\n", "a[b]=1\n", "[[ a -gt 1 ]]\n", "let a\n",
                                "x=$(let a)\n", "echo \"$(let a)\"\n", "`a`\n", "${!a}\n", "${a@P}\n", "cat <<E\n"}) {
    EXPECT_TRUE(after(evaluates).has_evaluated()) << evaluates;
  }
  for (const char* plain : {"echo \"$a\" ${b} '((a))' $(c)\n", "a & b 2>&1; (c)\n", "bash a.sh\n", "# ((a))\n",
                            "[[ -f a ]]\n", "[ a = b ]\n"}) {
    EXPECT_FALSE(after(plain).has_evaluated()) << plain;
  }
}

}  // namespace
}  // namespace lockstep
