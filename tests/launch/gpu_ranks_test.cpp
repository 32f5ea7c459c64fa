#include "launch/gpu_ranks.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.hpp"
#include "support/messages.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::gpu_ranks_test {

using Words = std::vector<std::string>;
const JobEnvironment plain_start;

class GpuRanksTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_ID", "PMIX_RANK", "PMI_RANK", "SLURM_JOB_ID"}) {
      ASSERT_EQ(::unsetenv(name), 0);
    }
  }

  // The program of this test, on a machine with so many GPUs.
  static ProgramResult run(int gpus, const Words& options, std::map<std::string, std::string> environment = {}) {
    Words words = {built_program("gpus_program")};
    words.insert(words.end(), options.begin(), options.end());
    environment["GPUS_HERE"] = std::to_string(gpus);
    return run_program(words, environment);
  }
  static void expect_refused(const ProgramResult& result, Subjects subjects) {
    EXPECT_EQ(result.exit_code, 2) << result.errors;
    EXPECT_EQ(result.output, "");
    const std::size_t begin = result.errors.find("]  ");  // after the rank and its node
    ASSERT_NE(begin, std::string::npos) << result.errors;
    expect_message(result.errors.substr(begin + 3), subjects);
  }
};

TEST_F(GpuRanksTest, the_words_are_mpiruns_with_the_programs_own_behind) {
  const Words words = {"/bin/train", "--data", "a b", "--gpus", "all", "--epochs=3"};
  const Words launch = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n",
                        "4",      "/bin/train",      "--data",    "a b",  "--epochs=3"};
  EXPECT_EQ(arguments_for_gpus(
                words, [] { return 4; }, plain_start),
            launch);
  EXPECT_EQ(arguments_for_gpus(
                {"/bin/train", "--gpus=4", "--data", "a b", "--epochs=3"}, [] { return 8; }, plain_start),
            launch);
}

TEST_F(GpuRanksTest, gpus_are_not_even_counted_without_the_option) {
  const auto fail = []() -> std::size_t { throw Error("counted"); };
  EXPECT_EQ(arguments_for_gpus({"/bin/train", "--epochs", "3"}, fail, plain_start), Words{});
  EXPECT_EQ(arguments_for_gpus({"/bin/train", "--gpus"}, fail, plain_start), Words{});
  EXPECT_EQ(arguments_for_gpus({"/bin/train", "--gpusx", "all"}, fail, plain_start), Words{});
}

TEST_F(GpuRanksTest, every_gpu_gets_a_rank) {
  const ProgramResult result =
      run(3, {"--gpus", "all", "--text", "two words"}, {{"OMPI_MCA_mpi_yield_when_idle", "1"}});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, "3 ranks: two words\n");
}

TEST_F(GpuRanksTest, one_gpu_needs_no_launcher) {
  const ProgramResult result = run(1, {"--gpus", "all", "--text", "alone"}, {{"PATH", "/nowhere"}});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, "1 ranks: alone\n");
}

TEST_F(GpuRanksTest, mpirun_is_the_first_one_in_path_and_gives_its_exit_code) {
  const TemporaryFolder folder;
  const std::filesystem::path script = folder.path() / "mpirun";
  std::ofstream(script) << "#!/bin/sh\nfor word; do echo \"<$word>\"; done\n"
                        << "echo $OMPI_MCA_odls_base_sigkill_timeout s for a checkpoint, "
                        << "quiet: $OMPI_MCA_orte_execute_quiet\nexit 75\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const ProgramResult result = run(2, {"--text", "$(echo no shell)", "--gpus=2"}, {{"PATH", folder.path().string()}});
  EXPECT_EQ(result.exit_code, 75);
  EXPECT_EQ(result.output, "<--oversubscribe>\n<--bind-to>\n<none>\n<-n>\n<2>\n<" +
                               built_program("gpus_program").string() +
                               ">\n<--text>\n<$(echo no shell)>\n3 s for a checkpoint, quiet: 1\n");
}

// mpirun printed a block of its own after it, and took twenty seconds. Open MPI 5 still prints the block.
TEST_F(GpuRanksTest, the_last_line_of_a_refusal_is_its_sentence) {
  const ProgramResult result =
      run(2, {"--gpus", "all", "--txet", "typed wrong"}, {{"OMPI_MCA_odls_base_sigkill_timeout", "0"}});
  EXPECT_EQ(result.exit_code, 2);
  const std::size_t end = result.errors.find("--help.\n");
  ASSERT_NE(end, std::string::npos) << result.errors;
  const std::string rest = result.errors.substr(end + 8);
  EXPECT_TRUE(rest.empty() || rest.find("prterun") != std::string::npos) << result.errors;
}

TEST_F(GpuRanksTest, a_missing_mpirun_is_told) {
  expect_refused(run(2, {"--gpus", "all"}, {{"PATH", "/nowhere"}}), {"mpirun", "--gpus", "PATH", "openmpi-bin"});
}

TEST_F(GpuRanksTest, a_machine_without_gpus_is_told) {
  expect_refused(run(0, {"--gpus", "all"}), {"--gpus all", "--device cuda"});
}

TEST_F(GpuRanksTest, more_gpus_than_there_are_is_refused) {
  expect_refused(run(2, {"--gpus", "3"}), {"--gpus 3", "2 GPUs", "--gpus all"});
  expect_refused(run(1, {"--gpus=2"}), {"--gpus 2", "1 GPU", "--gpus all"});
}

TEST_F(GpuRanksTest, a_rank_of_a_launcher_is_refused) {
  expect_refused(run(2, {"--gpus", "all"}, {{"SLURM_STEP_ID", "0"}}), {"--gpus", "srun"});
}

TEST_F(GpuRanksTest, several_nodes_are_refused) {
  expect_refused(run(2, {"--gpus", "all"}, {{"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NUM_NODES", "2"}}),
                 {"--gpus", "2 nodes", "srun"});
  EXPECT_EQ(run(2, {"--gpus", "all"}, {{"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NUM_NODES", "1"}}).exit_code, 0);
}

TEST_F(GpuRanksTest, the_cpu_is_refused) {
  expect_refused(run(2, {"--gpus", "all", "--device", "cpu"}), {"--gpus all", "--device cpu"});
}

TEST_F(GpuRanksTest, what_is_no_count_is_refused) {
  for (const std::string value : {"0", "-1", "two", "1025", "2x", "ALL"}) {
    expect_refused(run(2, {"--gpus=" + value}), {"--gpus", "'" + value + "'", "1024", "'all'"});
  }
}

}  // namespace lockstep::gpu_ranks_test
