#include "slurm/submit/job_commands.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "slurm/submit/job_file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

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

TEST(JobCommandsTest, a_value_is_itself_wherever_it_stands) {
  const std::string value = "a b'c\"; touch /x $(y) `z` \\ * ~ #";
  const std::string yaml = "  v: 'a b''c\"; touch /x $(y) `z` \\ * ~ #'\n  number: 5\n";
  const JobFile job = job_with(
      "v=<% $parameters.v %>; printf '[%s]' \"$v\" \"x <% $parameters.v %> y\" "
      "'<% $parameters.v %>'<% $parameters.number %>",
      yaml);
  EXPECT_EQ(output_of(job), "[" + value + "][x " + value + " y][" + value + "5]");
}

// On the platform a value is a part of the command's text. Here it was one word.
TEST(JobCommandsTest, a_value_without_quotes_is_as_many_words_as_it_holds) {
  const auto describe = [](const std::string& command) {
    return output_of(job_with(command, "  nccl: -x NCCL_DEBUG=INFO  -x A=*\n  none: ''\n  cut: ' a b '\n"));
  };
  EXPECT_EQ(describe("printf '[%s]' <% $parameters.nccl %>"), "[-x][NCCL_DEBUG=INFO][-x][A=*]");
  EXPECT_EQ(describe("printf '[%s]' --x=<% $parameters.nccl %>y"), "[--x=-x][NCCL_DEBUG=INFO][-x][A=*y]");
  EXPECT_EQ(describe("printf '[%s]' a <% $parameters.none %> b"), "[a][b]");
  EXPECT_EQ(describe("printf '[%s]' x<% $parameters.cut %>y"), "[x][a][b][y]");
  EXPECT_EQ(describe("A=<% $parameters.nccl %>; export B+=<% $parameters.cut %>; printf '[%s]' \"$A\" \"$B\""),
            "[-x NCCL_DEBUG=INFO  -x A=*][ a b ]");
  EXPECT_EQ(describe("case <% $parameters.cut %> in ' a b ') echo whole ;; esac"), "whole\n");
  EXPECT_EQ(describe("for x in <% $parameters.cut %>; do printf '[%s]' $x; done"), "[a][b]");
}

TEST(JobCommandsTest, parameters_have_names_with_hyphens_and_hold_others) {
  const JobFile job = job_with(
      "printf '[%s]' <% $parameters.batch-size %> <% $parameters.train.lr %> <% $parameters.sizes[1] %> "
      "\"<% $parameters.sizes.0 %>\" \"$LOCKSTEP_PARAMETER_train_lr\"",
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
                                           "\"; touch PWNED",       "x[$((y[$(touch PWNED)]))]",
                                           "-v x[$(touch PWNED)]"};
  struct Command {
    const char* text;
    bool is_refused;  // whatever the value holds
  };
  const std::vector<Command> commands = {
      {"[[ <> -gt 3 ]]", true},
      {"[[ 3 -lt '<>' ]]", true},
      {"if [[ \"<>\" -eq 1 && a ]]; then echo; fi", true},
      {"[[ -v <> ]]", true},
      {"[[ \"<>\" == x ]]", false},
      {"[ <> -gt 3 ]", false},
      {"[ -v <> ]", true},
      {"test -v \"<>\"", true},
      {"((<> > 3))", true},
      {"echo $((<>))", true},
      {"echo $[<>]", true},
      {"a[<>]=1", true},
      {"a=([<>]=1)", true},
      {"a=(1); echo ${a[<>]}", true},
      {"x=abc; echo ${x:<>}", true},
      {"for ((i = 0; i < <>; ++i)); do break; done", true},
      {"let <>", true},
      {"let 'n=<>'", true},
      {"declare -i n=<>", true},
      {"f() { local -i n=\"<>\"; }; f", true},
      {"declare '<>=1'", true},
      {"declare n=<>", false},
      {"export n=<>", false},
      {"printf -v <> x", true},
      {"printf -v n %s '<>'", false},
      {"read <> <<<1", true},
      {"unset '<>'", true},
      {"eval \"echo <>\"", true},
      {"command eval '<>'", true},
      {"trap '<>' EXIT", true},
      {"bash -c '<>'", true},
      {"env X=1 bash -ec \"<>\"", true},
      {"srun bash -o errexit -c '<>'", true},
      {"bash train.sh -c '<>' --note <>", false},
      {"bash -c 'echo \"$1\"' x '<>'", false},
      {"echo `echo <>`", true},
      {"cat <<E\n<>\nE", true},
      {"n=<>; ((n > 3))", false},
      {"n='<>'; [[ $n -gt 3 ]]", false},
      {"[[ $LOCKSTEP_PARAMETER_v -gt 3 ]]", false},
      {"(( LOCKSTEP_PARAMETER_v > 3 ))", false},
      {"set -- <>; (( $1 ))", false},
      {"n=<>; echo ${a[n]}", false},
      {"declare -i n; n=<>", false},
      {"echo <> >&2; printf '%s' \"<>\" '<>' x<>", false},
      {"# <>\necho", false},
  };
  const TemporaryFolder folder;
  int ran = 0;
  for (const Command& command : commands) {
    for (const std::string& value : values) {
      std::string text = command.text;
      for (std::size_t at = text.find("<>"); at != text.npos; at = text.find("<>")) {
        text.replace(at, 2, "<% $parameters.v %>");
      }
      const auto take = [&]() -> std::optional<JobFile> {
        try {
          return job_with(text, "  v: " + nlohmann::json(value).dump() + "\n");
        } catch (const Error& error) {
          EXPECT_EQ(error.failure(), Failure::usage);
          return std::nullopt;
        }
      };
      const std::optional<JobFile> job = take();
      EXPECT_FALSE(job && command.is_refused) << text << " is taken with " << value;
      if (!job) continue;
      ++ran;
      output_of(*job, folder.path());
      ASSERT_FALSE(std::filesystem::exists(folder.path() / "PWNED")) << text << " ran " << value;
    }
  }
  EXPECT_GT(ran, 100);
}

TEST(JobCommandsTest, plain_values_stand_where_bash_computes) {
  const JobFile job = job_with(
      "[[ <% $parameters.n %> -gt 3 ]] && printf '[%s]' $((<% $parameters.n %> + 1)); "
      "let 'm=<% $parameters.n %>'; eval \"echo <% $parameters.n %>\"",
      "  n: 4\n");
  EXPECT_EQ(output_of(job), "[5]4\n");
}

}  // namespace
}  // namespace lockstep
