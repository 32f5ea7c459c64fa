#include "job/launcher.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

namespace lockstep {
namespace {

// The launcher that an environment with nothing but `variables` in it tells of.
std::optional<std::string> launcher_with(const std::map<std::string, std::string>& variables) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_ID", "PMIX_RANK", "PMI_RANK"}) {
    EXPECT_EQ(::unsetenv(name), 0);
  }
  for (const auto& [name, value] : variables) EXPECT_EQ(::setenv(name.c_str(), value.c_str(), 1), 0);
  return launcher_here();
}

TEST(LauncherTest, a_plain_start_has_none) { EXPECT_EQ(launcher_with({}), std::nullopt); }

TEST(LauncherTest, each_launcher_is_known_by_what_it_sets) {
  EXPECT_EQ(launcher_with({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}), "mpirun");
  EXPECT_EQ(launcher_with({{"SLURM_STEP_ID", "0"}, {"PMIX_RANK", "0"}}), "srun");
  EXPECT_EQ(launcher_with({{"PMIX_RANK", "0"}}), "a PMI launcher");
  EXPECT_EQ(launcher_with({{"PMI_RANK", "3"}}), "a PMI launcher");
}

TEST(LauncherTest, a_batch_script_and_a_shell_of_slurms_are_no_ranks) {
  EXPECT_EQ(launcher_with({{"SLURM_STEP_ID", "4294967291"}}), std::nullopt);
  EXPECT_EQ(launcher_with({{"SLURM_STEP_ID", "4294967290"}}), std::nullopt);
  EXPECT_EQ(launcher_with({{"SLURM_STEP_ID", "batch"}}), std::nullopt);
}

}  // namespace
}  // namespace lockstep
