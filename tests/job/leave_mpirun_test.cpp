#include "job/leave_mpirun.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep::leave_mpirun_test {

// Names that mpirun 4.1 and 5.0 set, and those that users and other programs set.
TEST(LeaveMpirunTest, knows_the_variables_of_both_releases) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_MCA_ess", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri",
                           "OMPI_MCA_pmix", "PMIX_RANK", "PMIX_SERVER_URI41", "PRTE_LAUNCHED", "OMPI_MCA_num_procs",
                           "OPAL_USER_PARAMS_GIVEN", "OMPI_MCA_orte_ess_node_rank"}) {
    EXPECT_TRUE(is_of_mpirun(name)) << name;
  }
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_plm_rsh_agent",
                           "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_orte_execute_quiet", "PRTE_MCA_plm_ssh_agent",
                           "PATH", "SLURM_JOB_ID", "OMPI", "MPI"}) {
    EXPECT_FALSE(is_of_mpirun(name)) << name;
  }
}

TEST(LeaveMpirunTest, leaves_settings_of_users) {
  ::setenv("PMIX_NAMESPACE", "1", 1);
  ::setenv("OMPI_MCA_btl_tcp_if_include", "lo", 1);
  leave_mpirun();
  EXPECT_EQ(std::getenv("PMIX_NAMESPACE"), nullptr);
  EXPECT_STREQ(std::getenv("OMPI_MCA_btl_tcp_if_include"), "lo");
}

}  // namespace lockstep::leave_mpirun_test
