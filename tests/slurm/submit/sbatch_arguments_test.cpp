#include "slurm/submit/sbatch_arguments.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::sbatch_arguments_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string refusal_of(const SbatchChoices& choices) {
  try {
    sbatch_arguments("", choices);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.what();
  }
  return "taken";
}

TEST(SbatchArgumentsTest, what_is_chosen_goes_to_sbatch_word_by_word) {
  EXPECT_TRUE(sbatch_arguments("", {}).empty());
  EXPECT_THAT(sbatch_arguments("gpu", {"1-12", {"--exclusive", "--mail-user=a b;$(x)", "-N2"}}),
              ElementsAre("--partition=gpu", "--time=1-12", "--exclusive", "--mail-user=a b;$(x)", "-N2"));
  for (const char* time : {"30", "2:00:00", "1-12:30", "UNLIMITED"}) EXPECT_EQ(refusal_of({time, {}}), "taken") << time;
}

TEST(SbatchArgumentsTest, what_sbatch_would_read_otherwise_is_refused) {
  for (const char* time : {"2h", "-1", "1:", "1 --wrap=x"}) {
    expect_message(refusal_of({time, {}}), {"--time", "30"});
  }
  expect_message(refusal_of({"", {"--nodes=2", "other.sh"}}), {"--mail-user=me", "other.sh"});
  for (const char* word : {"", "-", "--"}) expect_message(refusal_of({"", {word}}), {fmt::format("'{}'", word)});
  expect_message(refusal_of({"", {"--wrap=x"}}), {"--wrap"});
  expect_message(refusal_of({"", {"--test-only"}}), {"'--test-only'"});
}

// Sbatch takes the beginning of a long option, and several short ones in a word.
TEST(SbatchArgumentsTest, what_submits_nothing_is_refused_however_it_is_written) {
  for (const std::string option : {"--test", "--te", "--test-onl", "--wrap", "--wr=x", "--help", "--he", "--usage",
                                   "--version", "--vers", "-h", "-u", "-V", "-QV", "-HkV"}) {
    expect_message(refusal_of({"", {option}}), {"'" + option.substr(0, option.find('=')) + "'"});
  }
  for (const char* option : {"--time-min=1", "--threads-per-core=1", "--tmp=1", "--wait", "--wckey=x", "--hint=x",
                             "-JV", "-H", "--verbose", "--uid=1", "-vvQ", "-nV", "--hold"}) {
    EXPECT_EQ(refusal_of({"", {option}}), "taken") << option;
  }
}

TEST(SbatchArgumentsTest, an_array_is_known_however_it_is_written) {
  for (const char* option : {"--array=1", "--ar=1", "-a1", "-Ha1"}) EXPECT_TRUE(makes_array({"", {option}})) << option;
  for (const char* option : {"--account=a", "-Ja", "-A1", "--exclusive"}) {
    EXPECT_FALSE(makes_array({"", {option}})) << option;
  }
}

TEST(SbatchArgumentsTest, a_word_is_added_to_the_comment) {
  std::vector<std::string> words = {"--comment=a", "-N2", "--com=b=c"};
  add_comment(words, "tag");
  EXPECT_THAT(words, ElementsAre("-N2", "--comment=b=c tag"));
  words = {"-N2"};
  add_comment(words, "tag");
  EXPECT_THAT(words, ElementsAre("-N2", "--comment=tag"));
}

TEST(SbatchArgumentsTest, a_time_limit_is_stated_or_not) {
  EXPECT_FALSE(states_time({}));
  EXPECT_FALSE(states_time({"", {"--time-min=1", "-t"}}));
  EXPECT_TRUE(states_time({"30", {}}));
  EXPECT_TRUE(states_time({"", {"--time=30"}}));
  EXPECT_TRUE(states_time({"", {"-Ht30"}}));
  EXPECT_TRUE(states_time({"", {"-t30"}}));
}

class SubmitJobTest : public testing::Test {
 protected:
  SubmitJobTest() {
    write_file_atomically(folder.path() / "job.yaml",
                          std::string_view("{protocolVersion: 2, name: one, type: job, taskRoles: {worker: "
                                           "{resourcePerInstance: {cpu: 1, memoryMB: 100}, commands: [work]}}}"));
  }
  ProgramResult submit(const std::vector<std::string>& words) const {
    std::vector<std::string> all = {built_program("submit_job"), folder.path() / "job.yaml"};
    all.insert(all.end(), words.begin(), words.end());
    return run_program(all);
  }
  TemporaryFolder folder;
};

TEST_F(SubmitJobTest, a_dry_run_says_what_sbatch_would_be_given) {
  const ProgramResult plain = submit({"--dry-run"});
  EXPECT_EQ(plain.exit_code, 0) << plain.errors;
  EXPECT_THAT(plain.output, HasSubstr("begin_attempt run_roles"));
  EXPECT_THAT(plain.errors, AllOf(HasSubstr("--time"), HasSubstr("SBATCH_TIMELIMIT")));
  const ProgramResult timed = submit({"--dry-run", "--time", "2:00:00", "--", "--exclusive"});
  EXPECT_EQ(timed.exit_code, 0) << timed.errors;
  EXPECT_THAT(timed.errors, HasSubstr(": --time=2:00:00 --exclusive\n"));
  EXPECT_THAT(timed.errors, Not(HasSubstr("SBATCH_TIMELIMIT")));
  const ProgramResult empty = submit({"--dry-run", "--time", ""});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.errors, HasSubstr("--time: the time limit is empty"));
}

TEST_F(SubmitJobTest, a_job_with_secrets_is_no_array) {
  const std::vector<std::string> array = {"--dry-run", "--", "--array=0-2%1"};
  EXPECT_EQ(submit(array).exit_code, 0);
  write_file_atomically(
      folder.path() / "job.yaml",
      std::string_view("{protocolVersion: 2, name: one, type: job, secrets: {s: x}, taskRoles: {worker: "
                       "{resourcePerInstance: {cpu: 1, memoryMB: 100}, commands: [work]}}}"));
  EXPECT_EQ(submit({"--dry-run"}).exit_code, 0);
  for (const std::string option : {"--array=0-2%1", "-a0-2", "--arr=1"}) {
    const ProgramResult refused = submit({"--dry-run", "--", option});
    EXPECT_EQ(refused.exit_code, 2) << option;
    EXPECT_THAT(refused.errors, AllOf(HasSubstr("secrets"), HasSubstr("array")));
  }
}

// Only the submission itself read the profile.
TEST_F(SubmitJobTest, a_dry_run_reports_what_is_wrong_with_the_sites_profile) {
  const std::string profile = folder.path() / "a profile";
  const ProgramResult absent = submit({"--dry-run", "--site", profile});
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.errors, AllOf(HasSubstr("'" + profile + "'"), HasSubstr("--site")));
  write_file_atomically(profile, std::string_view("acount=vision\n"));
  const ProgramResult wrong = submit({"--dry-run", "--site", profile});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.errors, AllOf(HasSubstr("line 1 of '" + profile + "'"), HasSubstr("'acount=vision'")));
  EXPECT_EQ(wrong.output, "");
  write_file_atomically(profile, std::string_view("account=vision\n"));
  EXPECT_EQ(submit({"--dry-run", "--site", profile}).exit_code, 0);
}

}  // namespace lockstep::sbatch_arguments_test
