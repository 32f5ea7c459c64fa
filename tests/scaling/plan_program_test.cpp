#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "made_up_study.hpp"
#include "scaling/study_file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::plan_program_test {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class PlanProgramTest : public ::testing::Test {
 protected:
  void SetUp() override { write_file_atomically(folder_.path() / "study.json", study_text(made_up_study({}))); }
  ProgramResult plan(std::vector<std::string> options) const {
    options.insert(options.begin(), {built_program("plan"), folder_.path().string()});
    return run_program(options);
  }
  void expect_refused(const std::vector<std::string>& options, const std::vector<std::string>& subjects) const {
    const ProgramResult result = plan(options);
    EXPECT_EQ(result.exit_code, 2);
    for (const std::string& subject : subjects) EXPECT_THAT(result.errors, HasSubstr(subject));
    EXPECT_EQ(result.output, "");
  }
  TemporaryFolder folder_;
};

TEST_F(PlanProgramTest, a_study_tells_of_a_thousand_ranks) {
  const ProgramResult result =
      plan({"--ranks", "8,1024", "--ranks-per-node", "1024", "--samples", "1281167", "--epochs", "90"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr("resnet20, 32 x 32 pixels, fp32, "), HasSubstr("cpu: made up")));
  EXPECT_THAT(result.output, HasSubstr("\n    8      1    256 "));
  EXPECT_THAT(result.output, HasSubstr("\nfor 1024 ranks:\nwarning: "));
  EXPECT_THAT(result.output, HasSubstr("\nsbatch --nodes=1 --ntasks-per-node=1024 --time="));
}

// They went to standard error, away from the command that they are of.
TEST_F(PlanProgramTest, doubts_stand_beside_the_command) {
  const std::vector<std::string> request = {"--ranks", "8", "--ranks-per-node", "8", "--samples", "50000"};
  EXPECT_THAT(plan(request).output, ContainsRegex("\nfor 8 ranks:\nwarning: .*4 ranks.* 8 [^\n]*\nbuckets: "));
  EXPECT_THAT(plan({"--ranks", "4", "--ranks-per-node", "4", "--samples", "50000"}).output, Not(HasSubstr("warning")));
  const ProgramResult crowded =
      plan({"--ranks", "16", "--ranks-per-node", "16", "--samples", "50000", "--batch-per-rank", "128"});
  EXPECT_EQ(crowded.exit_code, 0);
  EXPECT_THAT(crowded.output,
              ContainsRegex("\nfor 16 ranks:\nwarning: .*4 ranks.* 16 [^\n]*\nwarning: .*64 samples.* 128 [^\n]*\n"
                            "warning: .*16 ranks.*1 thread.*8 cores[^\n]*\nbuckets: "));
  write_file_atomically(folder_.path() / "study.json", study_text(made_up_study({.repeats = 1})));
  const ProgramResult noisy = plan(request);
  EXPECT_EQ(noisy.exit_code, 0);
  const std::string doubt = "\nwarning: [^\n]*weak scaling [^\n]*4 ranks";
  EXPECT_THAT(noisy.output, ContainsRegex(doubt));
  const std::filesystem::path run = folder_.path() / "run";
  std::filesystem::create_directories(run);
  write_file_atomically(run / "summary.json",
                        R"({"state": "done", "steps": 10, "epochs": 1, "model": "resnet20", "precision": "fp32",
                            "ranks": 2, "global_batch": 64, "samples_per_second": 1000, "hosts": {"node0": [0, 1]}})");
  write_file_atomically(run / "metrics.jsonl", std::string_view(""));
  const ProgramResult compared = plan({"--run", run});
  EXPECT_EQ(compared.exit_code, 0) << compared.errors;
  EXPECT_THAT(compared.output, ContainsRegex(doubt));
}

// It contained no data set, and one should be made.
TEST_F(PlanProgramTest, inspect_shows_a_study) {
  const ProgramResult shown = run_program({built_program("inspect"), folder_.path().string()});
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_THAT(shown.output, AllOf(HasSubstr("scaling study of "), HasSubstr("weak scaling, 32 samples per rank\n"),
                                  HasSubstr("The prediction is off")));
}

TEST_F(PlanProgramTest, what_is_missing_or_wrong_is_said_in_a_sentence) {
  expect_refused({}, {"--ranks", "--run"});
  expect_refused({"--ranks", "8"}, {"--samples", "--data"});
  expect_refused({"--ranks", "8", "--samples", "50000"}, {"2 nodes"});
  expect_refused({"--run", "run", "--batch-per-rank", "64"}, {"--batch-per-rank", "--ranks"});
  expect_refused({"--run", "run", "--epochs", "5"}, {"--epochs", "--ranks"});
  expect_refused({"--run", folder_.path() / "none"}, {"'" + (folder_.path() / "none").string() + "'", "summary.json"});
  write_file_atomically(folder_.path() / "study.json", "{}");
  const ProgramResult damaged = plan({"--ranks", "8", "--samples", "50000"});
  EXPECT_EQ(damaged.exit_code, 65);
  EXPECT_THAT(damaged.errors, HasSubstr("study.json"));
}

}  // namespace lockstep::plan_program_test
