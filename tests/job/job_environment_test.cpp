#include "job/job_environment.hpp"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::job_environment_test {

JobEnvironment job_with(const std::map<std::string, std::string>& set) {
  return read_job_environment([&](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  });
}
Launcher launcher_with(const std::map<std::string, std::string>& set) { return job_with(set).launcher; }

TEST(JobEnvironmentTest, a_plain_start_tells_nothing) {
  const JobEnvironment job = job_with({});
  EXPECT_EQ(job.launcher, Launcher::none);
  EXPECT_FALSE(job.has_pmi);
  EXPECT_FALSE(job.rank);
  EXPECT_FALSE(job.slurm);
  EXPECT_EQ(job.exit_report_file, "");
  EXPECT_EQ(job.cache_folder, "");
}

TEST(JobEnvironmentTest, how_long_mpi_may_take_to_start_is_a_number_of_seconds) {
  EXPECT_EQ(job_with({}).start_timeout_seconds, 300);
  EXPECT_EQ(job_with({{"LOCKSTEP_START_TIMEOUT", "2.5"}}).start_timeout_seconds, 2.5);
  EXPECT_EQ(job_with({{"LOCKSTEP_START_TIMEOUT", "0"}}).start_timeout_seconds, 0);
  for (const char* text : {"", "-1", "soon", "1e9", "nan"}) {
    const JobEnvironment job = job_with({{"LOCKSTEP_START_TIMEOUT", text}});
    EXPECT_EQ(job.start_timeout_seconds, 300) << text;
    EXPECT_EQ(job.mistake.empty(), std::string_view(text).empty()) << text;
  }
  EXPECT_EQ(job_with({{"LOCKSTEP_START_TIMEOUT", "0"}}).mistake, "");
}

TEST(JobEnvironmentTest, how_long_mpirun_waits_before_it_kills_is_its_option) {
  const std::map<std::string, std::string> open_mpi_5 = {{"OMPI_COMM_WORLD_SIZE", "2"}};
  EXPECT_EQ(job_with(open_mpi_5).kill_delay, (KillDelay{0.25, false}));
  std::map<std::string, std::string> open_mpi_4 = open_mpi_5;
  open_mpi_4["OMPI_MCA_orte_launch"] = "1";
  EXPECT_EQ(job_with(open_mpi_4).kill_delay, (KillDelay{1, true}));
  open_mpi_4["OMPI_MCA_odls_base_sigkill_timeout"] = "60";
  EXPECT_EQ(job_with(open_mpi_4).kill_delay, (KillDelay{60, true}));
  open_mpi_4["OMPI_MCA_odls_base_sigkill_timeout"] = "-1";
  EXPECT_EQ(job_with(open_mpi_4).kill_delay, (KillDelay{1, true}));
  EXPECT_FALSE(job_with({{"SLURM_STEP_ID", "0"}, {"OMPI_MCA_orte_launch", "1"}}).kill_delay);
  EXPECT_FALSE(job_with({}).kill_delay);
}

TEST(JobEnvironmentTest, each_launcher_is_known_by_what_it_sets) {
  EXPECT_EQ(launcher_with({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}), Launcher::mpirun);
  EXPECT_EQ(launcher_with({{"SLURM_STEP_ID", "0"}, {"PMIX_RANK", "0"}}), Launcher::srun);
  EXPECT_EQ(launcher_with({{"PMIX_RANK", "0"}}), Launcher::pmi);
  EXPECT_EQ(launcher_with({{"PMI_RANK", "3"}}), Launcher::pmi);
  EXPECT_EQ(launcher_name(Launcher::mpirun), "mpirun");
  EXPECT_EQ(launcher_name(Launcher::srun), "srun");
  EXPECT_EQ(launcher_name(Launcher::pmi), "a PMI launcher");
  EXPECT_EQ(launcher_name(Launcher::none), "");
}

TEST(JobEnvironmentTest, a_batch_script_and_a_shell_of_slurms_are_no_ranks) {
  for (const char* step : {"4294967291", "4294967290", "batch"}) {
    const JobEnvironment job = job_with({{"SLURM_JOB_ID", "17"}, {"SLURM_STEP_ID", step}, {"SLURM_PROCID", "0"}});
    EXPECT_EQ(job.launcher, Launcher::none) << step;
    EXPECT_FALSE(job.has_pmi);
    EXPECT_FALSE(job.rank);
    ASSERT_TRUE(job.slurm);
    EXPECT_FALSE(job.slurm->step);
  }
}

TEST(JobEnvironmentTest, mpi_finds_a_launcher_where_one_of_its_variables_is_set) {
  for (const char* name : {"PMIX_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    EXPECT_TRUE(job_with({{name, ""}}).has_pmi) << name;
  }
  EXPECT_FALSE(job_with({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}}).has_pmi);
}

TEST(JobEnvironmentTest, ranks_are_told_by_whoever_started_them) {
  const std::map<std::string, std::string> slurms = {
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}};
  const std::optional<JobEnvironment::Rank> by_srun = job_with(slurms).rank;
  ASSERT_TRUE(by_srun);
  EXPECT_EQ(by_srun->rank, 5);
  EXPECT_EQ(by_srun->ranks, 8);
  std::map<std::string, std::string> all = slurms;  // mpirun within a step of srun's
  all.insert({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  const std::optional<JobEnvironment::Rank> by_mpirun = job_with(all).rank;
  ASSERT_TRUE(by_mpirun);
  EXPECT_EQ(by_mpirun->rank, 1);
  EXPECT_EQ(by_mpirun->ranks, 2);
  EXPECT_TRUE(job_with({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).rank);
  EXPECT_FALSE(job_with({{"PMI_RANK", "1"}, {"PMI_SIZE", "1"}}).rank) << "a rank that there cannot be";
  EXPECT_FALSE(job_with({{"PMI_RANK", "0"}, {"PMI_SIZE", "many"}}).rank);
  EXPECT_FALSE(job_with({{"PMIX_RANK", "0"}}).rank);
}

TEST(JobEnvironmentTest, slurm_tells_of_its_job) {
  const JobEnvironment job = job_with({{"SLURM_JOB_ID", "17"},
                                       {"SLURM_STEP_ID", "2"},
                                       {"SLURM_RESTART_COUNT", "3"},
                                       {"SLURM_ARRAY_JOB_ID", "16"},
                                       {"SLURM_ARRAY_TASK_ID", "4"},
                                       {"SLURM_JOB_NUM_NODES", "2"},
                                       {"SLURM_JOB_NODELIST", "n[1-2]"},
                                       {"SLURM_JOB_END_TIME", "1795000000"}});
  ASSERT_TRUE(job.slurm);
  EXPECT_EQ(job.slurm->id, 17);
  EXPECT_EQ(job.slurm->step, 2);
  EXPECT_EQ(job.slurm->restarts, 3);
  ASSERT_TRUE(job.slurm->array_task);
  EXPECT_EQ(job.slurm->array_task->array, 16);
  EXPECT_EQ(job.slurm->array_task->task, 4);
  EXPECT_EQ(job.slurm->nodes, 2);
  EXPECT_EQ(job.slurm->node_list, "n[1-2]");
  EXPECT_EQ(job.slurm->ends_at, 1795000000);
}

TEST(JobEnvironmentTest, what_slurm_does_not_tell_is_not_made_up) {
  const JobEnvironment job = job_with({{"SLURM_JOB_ID", "17"}, {"SLURM_ARRAY_TASK_ID", "4"}});
  ASSERT_TRUE(job.slurm);
  EXPECT_EQ(job.slurm->restarts, 0);
  EXPECT_FALSE(job.slurm->step);
  EXPECT_FALSE(job.slurm->array_task);
  EXPECT_FALSE(job.slurm->nodes);
  EXPECT_FALSE(job.slurm->ends_at);
  EXPECT_FALSE(job_with({{"SLURM_JOB_END_TIME", "1795000000"}}).slurm) << "a job without a number";
}

TEST(JobEnvironmentTest, what_is_no_number_counts_as_not_told) {
  for (const char* text : {"17; touch broken", "soon", "nan", "0x7fffffff", "-1", "99999999999999999999", " 1", ""}) {
    EXPECT_FALSE(job_with({{"SLURM_JOB_ID", text}}).slurm) << text;
    const JobEnvironment job = job_with({{"SLURM_JOB_ID", "17"},
                                         {"SLURM_STEP_ID", text},
                                         {"SLURM_RESTART_COUNT", text},
                                         {"SLURM_ARRAY_JOB_ID", "16"},
                                         {"SLURM_ARRAY_TASK_ID", text},
                                         {"SLURM_JOB_NUM_NODES", text},
                                         {"SLURM_JOB_END_TIME", text}});
    ASSERT_TRUE(job.slurm);
    EXPECT_FALSE(job.slurm->step) << text;
    EXPECT_EQ(job.slurm->restarts, 0) << text;
    EXPECT_FALSE(job.slurm->array_task) << text;
    EXPECT_FALSE(job.slurm->nodes) << text;
    EXPECT_FALSE(job.slurm->ends_at) << text;
  }
  EXPECT_FALSE(job_with({{"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NUM_NODES", "0"}}).slurm->nodes);
}

TEST(JobEnvironmentTest, a_job_has_one_component_and_a_heterogeneous_one_several) {
  const JobEnvironment plain =
      job_with({{"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}});
  ASSERT_EQ(plain.slurm->components.size(), 1U);
  EXPECT_EQ(plain.slurm->components[0].node_list, "n[1-2]");
  EXPECT_EQ(plain.slurm->components[0].tasks_per_node, "2(x2)");
  const JobEnvironment several = job_with({{"SLURM_JOB_ID", "17"},
                                           {"SLURM_HET_SIZE", "2"},
                                           {"SLURM_JOB_NODELIST", "n1"},
                                           {"SLURM_JOB_NODELIST_HET_GROUP_0", "n1"},
                                           {"SLURM_JOB_NODELIST_HET_GROUP_1", "n[2-3]"},
                                           {"SLURM_TASKS_PER_NODE_HET_GROUP_1", "2,1"},
                                           {"SLURM_CPUS_PER_TASK_HET_GROUP_1", "4"}});
  ASSERT_EQ(several.slurm->components.size(), 2U);
  EXPECT_EQ(several.slurm->components[0].node_list, "n1");
  EXPECT_EQ(several.slurm->components[1].node_list, "n[2-3]");
  EXPECT_EQ(several.slurm->components[1].tasks_per_node, "2,1");
  EXPECT_EQ(several.slurm->components[0].cpus, 1);
  EXPECT_EQ(several.slurm->components[1].cpus, 4);
  EXPECT_EQ(job_with({{"SLURM_JOB_ID", "17"}, {"SLURM_HET_SIZE", "1000000000"}}).slurm->components.size(), 1U);
}

TEST(JobEnvironmentTest, gpus_are_granted_by_slurm_to_a_step_or_to_a_job) {
  const auto granted = [](std::map<std::string, std::string> values) {
    values["SLURM_JOB_ID"] = "17";
    return job_with(values).granted_gpus;
  };
  EXPECT_EQ(granted({{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_JOB_GPUS", "4,5"}}), "CUDA_VISIBLE_DEVICES=0,1");
  EXPECT_EQ(granted({{"CUDA_VISIBLE_DEVICES", "NoDevFiles"}, {"SLURM_STEP_GPUS", "3"}}), "SLURM_STEP_GPUS=3");
  EXPECT_EQ(granted({{"SLURM_GPUS_ON_NODE", "2"}}), "SLURM_GPUS_ON_NODE=2");
  EXPECT_EQ(granted({{"SLURM_JOB_GPUS", "0"}}), "SLURM_JOB_GPUS=0");
  EXPECT_EQ(granted({{"SLURM_JOB_GPUS", "0"}, {"SLURM_STEP_ID", "1"}}), "") << "a step without GPUs";
  EXPECT_EQ(granted({{"SLURM_GPUS_ON_NODE", "0"}, {"CUDA_VISIBLE_DEVICES", "-1"}}), "");
  EXPECT_EQ(job_with({{"CUDA_VISIBLE_DEVICES", "0"}}).granted_gpus, "") << "no job of Slurm's";
}

TEST(JobEnvironmentTest, a_task_of_a_role_knows_which_it_is) {
  const JobEnvironment job = job_with({{"LOCKSTEP_CLUSTER", "/a b/cluster.json"},
                                       {"LOCKSTEP_ROLE", "worker"},
                                       {"LOCKSTEP_INSTANCE", "3"},
                                       {"LOCKSTEP_INTERFACE", "ib0"}});
  EXPECT_EQ(job.task.cluster_file, "/a b/cluster.json");
  EXPECT_EQ(job.task.role, "worker");
  EXPECT_EQ(job.task.instance, 3);
  EXPECT_EQ(job.interface, "ib0");
  EXPECT_FALSE(job_with({{"LOCKSTEP_INSTANCE", "$(id)"}}).task.instance);
}

TEST(JobEnvironmentTest, what_slurm_numbers_down_from_2_to_the_32_is_no_number) {
  const std::string no_value = "4294967294";
  EXPECT_FALSE(job_with({{"SLURM_JOB_ID", no_value}}).slurm);
  for (const char* name : {"SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"}) {
    std::map<std::string, std::string> set = {
        {"SLURM_JOB_ID", "17"}, {"SLURM_ARRAY_JOB_ID", "16"}, {"SLURM_ARRAY_TASK_ID", "4"}};
    EXPECT_TRUE(job_with(set).slurm->array_task);
    set[name] = no_value;
    EXPECT_FALSE(job_with(set).slurm->array_task) << name;
  }
}

TEST(JobEnvironmentTest, the_verdicts_file_is_named_as_it_stands) {
  EXPECT_EQ(job_with({{"LOCKSTEP_VERDICT", "logs/why 17.json"}}).exit_report_file, "logs/why 17.json");
}

TEST(JobEnvironmentTest, the_cache_is_where_the_user_wants_it) {
  EXPECT_EQ(job_with({{"XDG_CACHE_HOME", "/fast/cache"}, {"HOME", "/home/ada"}}).cache_folder, "/fast/cache");
  EXPECT_EQ(job_with({{"HOME", "/home/ada"}}).cache_folder, "/home/ada/.cache");
  EXPECT_EQ(job_with({{"XDG_CACHE_HOME", "not/absolute"}, {"HOME", "/home/ada"}}).cache_folder, "/home/ada/.cache");
  EXPECT_EQ(job_with({{"XDG_CACHE_HOME", ""}}).cache_folder, "");
  EXPECT_EQ(job_with({{"HOME", "relative"}}).cache_folder, "");
}

}  // namespace lockstep::job_environment_test
