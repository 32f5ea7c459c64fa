// The start of programs: what is refused before MPI starts, how long that may take, and what a start does not need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::start_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StartTest : public testing::Test {
 protected:
  fs::path output() const { return folder_.path(); }

  // Where no space is in the way to it: LD_PRELOAD takes that for the end of a name.
  std::string preloadable(const std::string& library) const {
    fs::copy_file(built_program(library), output() / library);
    return (output() / library).string();
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(StartTest, processes_of_srun_that_cannot_find_each_other_are_refused_before_they_do_the_same_work) {
  const std::vector<std::string> arguments = {built_program("failing_program").string(), "--output", output().string()};
  const auto start = [&](const char* rank) {
    return run_program(arguments, {{"SLURM_STEP_ID", "0"},
                                   {"SLURM_PROCID", rank},
                                   {"SLURM_NTASKS", "2"},
                                   {"LOCKSTEP_VERDICT", (output() / "verdict.json").string()}});
  };
  const ProgramResult first = start("0");
  EXPECT_EQ(first.exit_code, 2);
  EXPECT_THAT(first.errors, AllOf(HasSubstr("--mpi=pmix"), HasSubstr("LOCKSTEP_LAUNCHER=mpirun")));
  EXPECT_EQ(nlohmann::json::parse(read_file(output() / "verdict.json", 1 << 16))["code"], 2);
  const ProgramResult second = start("1");
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_EQ(second.errors, "");
}

TEST_F(StartTest, a_limit_of_the_start_that_is_no_number_is_refused_before_it_is_ignored) {
  const ProgramResult result =
      run_program({built_program("failing_program").string(), "--output", output().string(), "--rank", "-1"},
                  {{"LOCKSTEP_START_TIMEOUT", "-5"}, {"LOCKSTEP_VERDICT", (output() / "verdict.json").string()}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("LOCKSTEP_START_TIMEOUT: '-5'"));
  EXPECT_EQ(nlohmann::json::parse(read_file(output() / "verdict.json", 1 << 16))["code"], 2);
}

// It ended with 134, "terminate called after throwing an instance of 'lockstep::Error'".
TEST_F(StartTest, a_verdict_whose_path_is_too_long_is_refused) {
  const ProgramResult result =
      run_program({built_program("failing_program").string(), "--output", output().string(), "--rank", "-1"},
                  {{"LOCKSTEP_VERDICT", std::string(5000, 'a')}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("aaa'"));
}

// Where Open MPI puts its folders all processes of a node meet: one that ends there takes away what others begin with.
TEST_F(StartTest, one_rank_alone_needs_no_folder_of_mpi) {
  const ProgramResult result =
      run_program({built_program("failing_program").string(), "--output", output().string(), "--rank", "-1"},
                  {{"OMPI_MCA_orte_tmpdir_base", "/proc/none"}});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
}

TEST_F(StartTest, mpi_that_does_not_start_ends_the_program_in_time) {
  const ProgramResult result =
      run_program({built_program("failing_program").string(), "--output", output().string(), "--how", "exit_0"},
                  {{"LD_PRELOAD", preloadable("libhanging_mpi.so")},
                   {"LOCKSTEP_START_TIMEOUT", "0.5"},
                   {"LOCKSTEP_VERDICT", (output() / "verdict.json").string()}});
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 76);
  const nlohmann::json verdict = nlohmann::json::parse(read_file(output() / "verdict.json", 1 << 16));
  EXPECT_EQ(verdict["code"], 76);
  expect_message(verdict["sentence"].get<std::string>(), {"0.5 s", "MPI_Init", "LOCKSTEP_START_TIMEOUT"});
  EXPECT_THAT(result.errors, HasSubstr(verdict["sentence"].get<std::string>()));
}

TEST_F(StartTest, mpi_that_cannot_find_other_ranks_ends_the_program_with_words) {
  const ProgramResult result = run_program(
      {built_program("failing_program").string(), "--output", output().string(), "--how", "exit_0"},
      {{"LD_PRELOAD", preloadable("liblonely_mpi.so")}, {"LOCKSTEP_VERDICT", (output() / "verdict.json").string()}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("MPI "));
  EXPECT_THAT(result.errors, Not(HasSubstr("crashed")));
  EXPECT_EQ(nlohmann::json::parse(read_file(output() / "verdict.json", 1 << 16))["code"], 1);
}

// Threads had stacks of 128 KiB then, and ended in SIGSEGV without a word.
TEST_F(StartTest, threads_have_room_whatever_the_limit_of_the_stack) {
  const ProgramResult result =
      run_program({"sh", "-c", "ulimit -s 128; exec \"$@\"", "sh", built_program("failing_program").string(),
                   "--output", output().string(), "--how", "half_a_mebibyte_in_thread"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
}

}  // namespace lockstep::start_test
