#include "slurm/submit/job_commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "slurm/submit/job_file.hpp"
#include "support/message_of.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::job_commands_test {

// A job of one command, and parameters (lines of YAML, indented by two spaces).
JobFile job_with(const std::string& command, const std::string& parameters) {
  return parse_job_file("protocolVersion: 2\nname: a\ntype: job\nparameters:\n" + parameters +
                            "taskRoles: {worker: {resourcePerInstance: {cpu: 1}, commands: [" +
                            nlohmann::json(command).dump() + "]}}\n",
                        "job.yaml");
}

// What the command says, run by bash with the job's variables in `folder`.
std::string output_of(const JobFile& job, const std::string& folder = "/") {
  std::vector<std::string> words = {"env", "-C", folder};
  words.insert(words.end(), job.roles.at(0).command.begin(), job.roles.at(0).command.end());
  return run_program(words, job.parameters).output;
}

std::string with_reference(std::string text) {
  for (std::size_t at = text.find("<>"); at != text.npos; at = text.find("<>")) {
    text.replace(at, 2, "<% $parameters.v %>");
  }
  return text;
}

// Nothing if the job is refused.
std::optional<JobFile> job_unless_refused(const std::string& command, const std::string& value) {
  try {
    return job_with(with_reference(command), "  v: " + nlohmann::json(value).dump() + "\n");
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    return std::nullopt;
  }
}

// Places where a shell may evaluate a value.
struct Command {
  const char* text;
  bool is_refused;  // whatever the value holds
};
const std::vector<Command> constructs = {
    {"[[ <> -gt 3 ]]", true},
    {"[[ 3 -lt '<>' ]]", true},
    {R"(if [[ "<>" -eq 1 && a ]]; then echo; fi)", true},
    {R"([[ -v "<>" ]])", true},
    {R"([[ "<>" == x ]])", true},
    {R"([ "<>" -gt 3 ])", true},
    {R"([ -v "<>" ])", true},
    {R"(test -v "<>")", true},
    {R"((("<>" > 3)))", true},
    {R"(echo $(("<>")))", true},
    {R"(echo $((1 + $(echo "<>"))))", true},
    {R"(echo $["<>"])", true},
    {R"(a["<>"]=1)", true},
    {R"(a=(["<>"]=1))", true},
    {R"(a=(1); echo ${a["<>"]})", true},
    {R"(x=abc; echo ${x:"<>"})", true},
    {R"(for ((i = 0; i < "<>"; ++i)); do break; done)", true},
    {R"(for ((i = 0; i < 1; ++i)) do eval "<>"; done)", true},
    {R"(let "<>")", true},
    {R"(declare -i n="<>")", true},
    {R"(f() { local -i n="<>"; }; f)", true},
    {R"(declare "<>"=1)", true},
    {R"(export "<>"; readonly "<>")", false},
    {R"(export n="<>")", false},
    {R"(printf -v "<>" x)", true},
    {R"(printf "-v<>" x)", true},
    {R"(printf "<>" x)", true},
    {R"(printf "$E<>" x)", true},
    {R"(printf "a<>" x; exit "<>")", false},
    {R"(n="<>"; printf "$n" x)", true},
    {R"(printf "$LOCKSTEP_PARAMETER_v" x)", false},
    {R"(shift "<>"; break "<>"; (cd "<>"; set "<>"))", false},
    {R"(sort "<>" | tail "<>")", false},
    {R"(ls "<>"; date "<>"; sleep "<>"; hostname -s "<>"; env A="<>" printenv A)", false},
    {R"(printf %s "<>" "<>"; printf %d "<>")", false},
    {R"(read "<>" <<<1)", true},
    {R"(getopts ab "<>" -a)", false},
    {R"(unset "<>")", true},
    {R"(eval "echo <>")", true},
    {R"sh(eval "echo $(echo "<>")")sh", true},
    {R"(X=1 command eval >log "<>")", true},
    {R"(>log eval &>log "<>")", true},
    {R"(trap "<>" EXIT)", true},
    {R"(bash -c "<>")", true},
    {R"(env X=1 bash -ec "<>")", true},
    {R"(timeout 5 bash -o errexit -c "<>")", true},
    {R"(bash <<<"<>")", true},
    {R"(source /dev/stdin <<<"<>")", true},
    {R"(bash nothing.sh "<>")", false},
    {R"(bash -c 'echo "$LOCKSTEP_PARAMETER_v"')", false},
    {R"(PS4="<>"; set -x; true)", true},
    {R"(export RANDOM="<>")", true},
    {R"(export BASH_ENV="<>"; bash -c true)", true},
    {R"(echo >&"<>")", true},
    {R"(echo >& "a<>")", true},
    {R"(echo 1>&1"<>")", true},
    {R"(n="<>"; echo >& "$n")", false},
    {R"(n="<>"; echo >&1"$n")", false},
    {R"(n="<>"; PS4="$n"; set -x; true)", false},
    {R"(echo <&"<>" &>"<>" &>>"<>" >|"<>" <>"<>")", false},
    {R"(n="<>"; ((n > 3)))", false},
    {R"(n="<>"; [[ $n -gt 3 ]])", false},
    {R"(n="q[<>]"; echo $((n)))", false},
    {R"(n="<>"; test -v "q[$n]")", false},
    {R"([[ "$LOCKSTEP_PARAMETER_v" -gt 3 ]])", false},
    {"(( LOCKSTEP_PARAMETER_v > 3 ))", false},
    {R"(set -- "<>"; (( $1 )))", false},
    {R"(n="<>"; echo ${a[n]})", false},
    {R"(n="<>"; echo ${!n} ${x:n})", false},
    {R"(n="<>"; echo "${n@P}")", false},
    {R"(declare -i n; n="<>")", false},
    {R"(echo "<>" >&2; printf '%s' "<>" x"<>"; ls ["<>"]*)", false},
    {R"(case "<>" in "<>") echo "<>" ;; esac)", false},
    {R"(echo a >"<>")", false},
    {"# \"<>\"\necho", false},
    {R"(echo "<>" | bash)", true},
    {R"(echo "<>" |& tee log | sh)", true},
    {R"({ echo a; echo "<>"; } | bash)", true},
    {R"(for i in a; do echo "<>"; done | (cat; bash))", true},
    {R"(f() { cat | bash; }; echo "<>" | f)", true},
    {R"sh(echo "<>" > >(bash))sh", true},
    {R"sh(exec > >(bash); echo "<>")sh", true},
    {R"sh(bash <(echo "<>"))sh", true},
    {R"(echo a & eval "<>")", true},
    {R"(E=eval; $E "<>")", true},
    {R"(n="<>"; E=eval; $E "$n")", true},
    {R"(n="<>"; eval "$n")", true},
    {R"(n="<>"; $n)", true},
    {R"(n="<>"; echo "$n" | bash)", true},
    {R"(n="<>" bash -c 'eval "$n"')", true},
    {R"sh(n=$(echo "<>"); bash -c "$n")sh", true},
    {R"(set -- "<>"; eval "$1")", true},
    {R"(for n in "<>"; do eval "$n"; done)", true},
    {R"(flock lock -c "<>")", true},
    {R"(/bin/b?sh -c "<>")", true},
    {R"(env bash -c "<>")", true},
    {R"(env -S "bash -c" "<>")", true},
    {R"(env -i "<>")", true},
    {R"(exec "<>")", true},
    {R"(xargs -I@ sh -c @ <<<"<>")", true},
    {R"(xargs sh -c "<>" <<<a)", true},
    {R"(find . -maxdepth 0 -exec sh -c "<>" ';')", true},
    {R"(parallel ::: "<>")", true},
    {R"(awk "BEGIN { system(\"<>\") }")", true},
    {R"(sed "1e <>" <<<a)", true},
    {R"sh(python3 -c "import os; os.system('''<>''')")sh", true},
    {R"(python3 -uc "<>")", true},
    {R"(python3 "<>")", true},
    {R"sh(perl -e "system q(<>)")sh", true},
    {R"(su -c "<>")", true},
    {R"(time sh -c "<>")", true},
    {R"(while read -r n; do eval "$n"; done <<<"<>")", true},
    {R"(./run "<>")", true},
    {R"(python3 nothing.py "<>" 2>&1 | tee log)", false},
    {R"(n="<>" printenv n)", false},
    {R"(env X=1 timeout 5 echo "<>" || exit 0)", false},
};

// On the platform a value is a part of the command's text.
TEST(JobCommandsTest, a_plain_value_is_text) {
  const auto describe = [](const std::string& command, const std::string& value) {
    return output_of(job_with(with_reference(command), "  v: " + nlohmann::json(value).dump() + "\n"));
  };
  const std::string nccl = "-x NCCL_DEBUG=INFO \t-x A=1,2:3%@+~";
  EXPECT_EQ(describe("printf '[%s]' <>", nccl), "[-x][NCCL_DEBUG=INFO][-x][A=1,2:3%@+~]");
  EXPECT_EQ(describe("printf '[%s]' --x=<>y", nccl), "[--x=-x][NCCL_DEBUG=INFO][-x][A=1,2:3%@+~y]");
  EXPECT_EQ(describe(R"(printf '[%s]' "<>" '<>')", nccl), "[" + nccl + "][" + nccl + "]");
  EXPECT_EQ(describe("<> env | grep -e '^AB' # <>", "AB=1"), "AB=1\n");
  EXPECT_EQ(describe("<> a b", "echo -n"), "a b");
  EXPECT_EQ(describe("for x in {1..<>}; do printf '[%s]' $x; done", "3"), "[1][2][3]");
  EXPECT_EQ(describe(R"([[ <> -gt 3 ]] && printf '[%s]' $((<> + 1)); let 'm=<>'; eval "echo <> $m")", "4"), "[5]4 4\n");
  EXPECT_EQ(describe("printf '[%s]' $(echo <>) `echo <>` ${A:-<>}; cat <<E\n<>\nE", "a b"), "[a][b][a][b][a][b]a b\n");
  EXPECT_EQ(describe("cat <<E\n<>\necho c\nE", "E"), "c\n") << "the value ended the here document";
  for (const char* blank : {"", " ", "\t "}) {
    EXPECT_EQ(describe("printf '[%s]' a <> b # <>", blank), "[a][b]");
    EXPECT_EQ(describe(R"(printf '[%s]' "<>" '<>')", blank), "[" + std::string(blank) + "][" + blank + "]");
    EXPECT_EQ(describe(R"(A=<>; <> printf '[%s]' "$A")", blank), "[]");
  }
}

TEST(JobCommandsTest, other_values_are_variables_in_double_quotes) {
  const std::string value = "a b'c\"; touch PWNED $(touch PWNED) `touch PWNED` \\ * ~ # x[$(touch PWNED)] \n";
  const TemporaryFolder folder;
  for (const char* command :
       {R"(printf %s "<>")", R"(v="<>"; printf %s "$v")", R"([[ a ]] && printf %s "<>")",
        "printf %s \"$(printf %s \"<>\")\"\n", R"(x=$(hostname); export v="<>"; printf %s "$LOCKSTEP_PARAMETER_v")",
        R"(printf %s "${A}<>" 2>&1)", R"(for i in a; do cat <<<"<>"; done)", R"(if true; then printf '%s' "<>"; fi)",
        R"(f() { printf %s "<>"; }; f)", "unknown() { :; }; unknown; printf %s \"<>\""}) {
    const std::optional<JobFile> job = job_unless_refused(command, value);
    ASSERT_TRUE(job) << command;
    EXPECT_EQ(output_of(*job, folder.path()).substr(0, value.size() - 2), value.substr(0, value.size() - 2)) << command;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "PWNED")) << command;
  }
  for (const char* command : {"echo <>", "echo '<>'", "echo a<>", "# <>\n echo", "cat <<E\n<>\nE", R"(echo "${A:-<>}")",
                              R"(echo `echo "<>"`)", R"(echo "$<>")", R"(echo "\<>"), "echo $'<>'", R"(ls a["<>"])"}) {
    EXPECT_FALSE(job_unless_refused(command, "a;b")) << command;
  }
}

TEST(JobCommandsTest, parameters_have_names_with_hyphens_and_hold_others) {
  const JobFile job = job_with(
      "printf '[%s]' <% $parameters.batch-size %> <% $parameters.train.lr %> <% $parameters.sizes[1] %> "
      R"("<% $parameters.sizes.0 %>" "$LOCKSTEP_PARAMETER_train_lr")",
      "  batch-size: 32\n  train: {lr: 1e-1, momentum: 0.9}\n  sizes: [a b, c]\n");
  EXPECT_EQ(output_of(job), "[32][1e-1][c][a b][1e-1]");
}

// Bash ran "$(touch PWNED)" of a value that it computed with.
TEST(JobCommandsTest, bash_runs_nothing_that_a_value_holds) {
  const std::vector<std::string> values = {"x[$(touch PWNED)]",     "a[$(touch PWNED)]=1",
                                           "x[`touch PWNED`]",      "$(touch PWNED)",
                                           "`touch PWNED`",         "1; touch PWNED",
                                           "1 && touch PWNED",      "1\ntouch PWNED",
                                           "x[y[$(touch PWNED)]]",  "x[${z:=$(touch PWNED)}]",
                                           "1 ]] && touch PWNED #", "'; touch PWNED; '",
                                           R"("; touch PWNED)",     "x[$((y[$(touch PWNED)]))]",
                                           "-v x[$(touch PWNED)]",  "-vx[$(touch PWNED)]",
                                           "touch PWNED;"};
  const TemporaryFolder folder;
  int ran = 0;
  for (const Command& command : constructs) {
    for (const std::string& value : values) {
      const std::optional<JobFile> job = job_unless_refused(command.text, value);
      EXPECT_FALSE(job && command.is_refused) << command.text << " is taken with " << value;
      if (!job) continue;
      ++ran;
      output_of(*job, folder.path());
      ASSERT_FALSE(std::filesystem::exists(folder.path() / "PWNED")) << command.text << " ran " << value;
    }
  }
  EXPECT_GT(ran, 100);
}

// '^' is a letter that no construct runs anything for. The text behind it could be a command.
TEST(JobCommandsTest, a_circumflex_is_plain_in_every_construct) {
  const TemporaryFolder folder;
  for (const Command& command : constructs) {
    for (const char* value : {"^touch PWNED", "^a^touch PWNED"}) {
      const std::optional<JobFile> job = job_unless_refused(command.text, value);
      ASSERT_TRUE(job) << command.text;
      output_of(*job, folder.path());
      ASSERT_FALSE(std::filesystem::exists(folder.path() / "PWNED")) << command.text << " ran " << value;
    }
  }
}

// A plain value can name a variable that holds another one.
TEST(JobCommandsTest, a_plain_value_leads_to_no_other_one_that_would_run) {
  const TemporaryFolder folder;
  const std::string parameters = "  hostile: 'x[$(touch PWNED)]'\n  next: 'x[LOCKSTEP_PARAMETER_hostile]'\n  v: ";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"echo $((<>))", "LOCKSTEP_PARAMETER_hostile"},
      {"echo $((<>))", "LOCKSTEP_PARAMETER_next"},
      {"[[ <> ]]", "-v LOCKSTEP_PARAMETER_hostile"},
      {"[[ <> ]]", "1 -lt LOCKSTEP_PARAMETER_next"},
      {"echo ${<>}", "LOCKSTEP_PARAMETER_hostile@P"},
      {R"(echo "${!<>}")", "LOCKSTEP_PARAMETER_hostile"},
      {"<>", "let LOCKSTEP_PARAMETER_hostile"},
      {"echo ${PATH:<>}", "LOCKSTEP_PARAMETER_next"},
      {R"(<> "<% $parameters.hostile %>")", "declare -i n=3"},
  };
  for (const auto& one : cases) {
    const auto take = [&] { job_with(with_reference(one.first), parameters + one.second + "\n"); };
    EXPECT_THAT(message_of(Failure::usage, take), testing::HasSubstr("'$parameters.hostile'")) << one.first;
  }
}

}  // namespace lockstep::job_commands_test
