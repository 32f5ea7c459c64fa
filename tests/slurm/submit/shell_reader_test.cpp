#include "slurm/submit/shell_reader.hpp"

#include <gtest/gtest.h>

namespace lockstep::shell_reader_test {

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

TEST(ShellReaderTest, only_known_commands_run_nothing_of_their_words) {
  for (const char* unknown : {"[[ ",
                              "if [[ a && ",
                              "[[ (a || ",
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
                              "echo a & eval ",
                              "echo a &eval ",
                              "f() { eval ",
                              "function f { eval ",
                              "for ((i = 0; i < 1; ++i)) do eval ",
                              "eval \"$(echo ",
                              "let ",
                              "declare -i ",
                              "printf -v",
                              "printf ",
                              "printf $A",
                              "printf  -v ",
                              "wait -n -p ",
                              "bash -c ",
                              "bash ",
                              "bash a",
                              "bash $A ",
                              "bash - ",
                              "bash /dev/stdin ",
                              "srun /bin/bash -o errexit -ec ",
                              "bash <<<",
                              "ssh a ",
                              "a >&",
                              "echo >&",
                              "echo >&  ",
                              "echo 1>&1",
                              "a=([",
                              "export PS4=",
                              "x; trap ",
                              "$E ",
                              "\"$E\" ",
                              "$(echo eval) ",
                              "`echo eval` ",
                              "flock -c ",
                              "env -i bash -c ",
                              "env -S ",
                              "/bin/b?sh -c ",
                              "awk ",
                              "python -c ",
                              "python3.11 -uc ",
                              "python -m timeit ",
                              "./a ",
                              "done <<<",
                              "",
                              "ech",
                              "echo",
                              "exec "}) {
    EXPECT_EQ(after(std::string(unknown) + "\"").use(), WordUse::unknown) << unknown;
  }
  for (const char* reads : {"echo ",
                            "[[ a ]] && echo ",
                            "[ a ]; echo ",
                            "if [[ a -gt 1 ]]; then cat ",
                            "eval a\necho ",
                            "eval a | cat ",
                            "(eval a) && cat ",
                            "echo \"eval ",
                            "echo '[[ ' 'let ",
                            "echo \"[a] ",
                            "echo [a] ",
                            "printf %s x ",
                            "bash a.sh ",
                            "python --test;echo ",
                            "# eval\necho ",
                            "python -u t.py ",
                            "python3 t.py --a ",
                            "/bin/cat ",
                            "mpirun -np 4 -x A=1 --mca=x train_cifar ",
                            ">a 2>&1 echo ",
                            "> a cat ",
                            "while ! cat ",
                            "{ cat ",
                            "echo $(hostname) ",
                            "echo \"$(cat ",
                            "echo >&2 ",
                            "echo &>a ",
                            "case "}) {
    EXPECT_EQ(after(std::string(reads) + "'").use(), WordUse::reads) << reads;
  }
  for (const char* stores :
       {"a=", "a+=", "A=1 b=", "export a=", "readonly ", "set -- ", "for i in ", "a=\"$(cat ", "a=1 echo $(b="}) {
    EXPECT_EQ(after(std::string(stores) + "\"").use(), WordUse::stores) << stores;
  }
}

TEST(ShellReaderTest, commands_that_may_run_what_others_print_or_store_are_known) {
  for (const char* runs :
       {"cat a | bash\n", "cat a |\n sh\n", "cat a |& bash\n", "cat a | tee b | xargs c\n", "{ cat a; } | bash\n",
        "(cat a) | (cat; bash)\n", "cat a | while read -r b; do eval \"$b\"; done\n", "cat a | $B\n",
        "cat >a > >(bash)\n", "cat <<E | cat\n", "cat a | `b`\n", "cat a | python\n", "cat a | bash /dev/stdin\n",
        "a || b | cat; c\n"}) {
    EXPECT_TRUE(after(runs).may_run_output()) << runs;
    EXPECT_TRUE(after(runs).has_unknown_commands()) << runs;
  }
  for (const char* harmless :
       {"./a \"$(b)\"\n", "a | cat 2>&1 | tee b\n", "a || b\n", "a >|b; c\n", "a & b\n", "echo '|' a; b\n",
        "a | while true; do cat; done\n", "a | python count.py\n", "a | grep b || exit 1\n"}) {
    EXPECT_FALSE(after(harmless).may_run_output()) << harmless;
  }
  for (const char* known :
       {"if [[ a == b ]]; then echo; else cat; fi\n", "((a > 1)) && let b=1\n", "X=1\nexport Y=2\nset -e\n",
        "for i in a b; do echo $i; done\n", "for ((i = 0; i < 2; ++i)); do echo; done\n",
        "x=$((1 + (2)))\nx=$(hostname)\n", "train_cifar --a 2>&1 | tee b\n", "# eval a\n"}) {
    EXPECT_FALSE(after(known).has_unknown_commands()) << known;
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

}  // namespace lockstep::shell_reader_test
