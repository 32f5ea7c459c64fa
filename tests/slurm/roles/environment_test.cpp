#include "slurm/roles/environment.hpp"

#include <gtest/gtest.h>

#include "slurm/roles/small_cluster.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::environment_test {

TEST(EnvironmentTest, an_instance_is_told_who_it_is_and_where_the_others_are) {
  Cluster cluster = small_cluster();
  cluster.checkpoint = "/runs/a b/step-1.h5";
  Environment of = environment_of(cluster, 3);
  const Environment expected = {{"LOCKSTEP_ROLE", "worker"},
                                {"LOCKSTEP_INSTANCE", "1"},
                                {"LOCKSTEP_ATTEMPT", "2"},
                                {"LOCKSTEP_ROLES", "ps,worker"},
                                {"LOCKSTEP_INSTANCES_ps", "2"},
                                {"LOCKSTEP_INSTANCES_worker", "3"},
                                {"LOCKSTEP_HOSTS_ps", "n1,n1"},
                                {"LOCKSTEP_HOSTS_worker", "n1,n2,n2"},
                                {"LOCKSTEP_ADDRESSES_ps", "10.0.0.1,10.0.0.1"},
                                {"LOCKSTEP_ADDRESSES_worker", "10.0.0.1,10.0.0.2,10.0.0.2"},
                                {"LOCKSTEP_MASTER_ADDRESS", "10.0.0.1"},
                                {"LOCKSTEP_MASTER_PORT", "20002"},
                                {"LOCKSTEP_CHECKPOINT", "/runs/a b/step-1.h5"},
                                {"LOCKSTEP_PORTS_ps_1_rpc", "20007,20008"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(of[name], value) << name;
  EXPECT_EQ(environment_of(small_cluster(), 0).count("LOCKSTEP_CHECKPOINT"), 0U);
}

// Every name of the platform's own list (its manual, "how to use advanced job settings").
TEST(EnvironmentTest, programs_of_openpai_find_what_its_manual_lists) {
  Environment of = environment_of(small_cluster(), 1);
  const Environment expected = {{"PAI_JOB_NAME", "ada~night run"},
                                {"PAI_USER_NAME", "ada"},
                                {"PAI_DEFAULT_FS_URI", "file:///"},
                                {"PAI_TASK_ROLE_COUNT", "2"},
                                {"PAI_TASK_ROLE_LIST", "ps,worker"},
                                {"PAI_TASK_ROLE_TASK_COUNT_ps", "2"},
                                {"PAI_TASK_ROLE_TASK_COUNT_worker", "3"},
                                {"PAI_HOST_IP_ps_0", "10.0.0.1"},
                                {"PAI_HOST_IP_worker_2", "10.0.0.2"},
                                {"PAI_PORT_LIST_ps_1_rpc", "20007,20008"},
                                {"PAI_RESOURCE_worker", "1,4,8192,0"},
                                {"PAI_MIN_FAILED_TASK_COUNT_worker", "1"},
                                {"PAI_MIN_SUCCEEDED_TASK_COUNT_worker", "3"},
                                {"PAI_MIN_SUCCEEDED_TASK_COUNT_ps", "-1"},
                                {"PAI_CURRENT_TASK_ROLE_NAME", "ps"},
                                {"PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "1"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(of[name], value) << name;
}

TEST(EnvironmentTest, programs_of_openpai_find_what_its_manual_does_not_list) {
  Environment of = environment_of(small_cluster(), 1);
  const Environment expected = {{"PAI_ps_1_rpc_PORT", "20007,20008"},
                                {"PAI_worker_0_http_PORT", "20010"},
                                {"PAI_TASK_INDEX", "1"},
                                {"PAI_TASKS_NUM", "5"},
                                {"PAI_TASK_ROLE_INSTANCES", "ps:0,ps:1,worker:0,worker:1,worker:2"},
                                {"PAI_TASK_ROLE_ps_HOST_LIST", "10.0.0.1:20001,10.0.0.1:20006"},
                                {"PAI_VIRTUAL_CLUSTER", "long"},
                                {"PAI_WORK_DIR", "/home/ada/a b"},
                                {"PAI_CURRENT_CONTAINER_IP", "10.0.0.1"},
                                {"PAI_CURRENT_CONTAINER_PORT", "20006"},
                                {"PAI_CONTAINER_SSH_PORT", "20009"},
                                {"PAI_CONTAINER_HOST_PORT_LIST", "http:20006;rpc:20007,20008;ssh:20009;"},
                                {"PAI_CONTAINER_HOST_rpc_PORT_LIST", "20007,20008"},
                                {"FC_FRAMEWORK_ATTEMPT_ID", "2"},
                                {"FC_TASK_ATTEMPT_ID", "0"},
                                {"FC_TASKROLE_NAME", "ps"},
                                {"FC_TASK_INDEX", "1"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(of[name], value) << name;
}

TEST(EnvironmentTest, a_task_of_an_array_knows_the_number_of_all_and_the_place_of_none_but_itself) {
  Cluster cluster = small_cluster();
  Role role = cluster.roles[0];
  role.instances = 50;
  cluster.roles = role_of_array_task({role}, 7);
  const ClusterInstance first = cluster.instances.front();
  cluster.instances = instances_of(cluster.roles);
  cluster.instances.front().host = first.host;
  cluster.instances.front().address = first.address;
  cluster.instances.front().ports = first.ports;
  Environment of = environment_of(parse_cluster(cluster_text(cluster), "cluster.json"), 0);
  const Environment expected = {
      {"LOCKSTEP_INSTANCE", "7"},       {"LOCKSTEP_INSTANCES_ps", "50"}, {"LOCKSTEP_HOSTS_ps", "n1"},
      {"PAI_TASK_INDEX", "7"},          {"PAI_TASKS_NUM", "50"},         {"PAI_TASK_ROLE_TASK_COUNT_ps", "50"},
      {"PAI_HOST_IP_ps_7", "10.0.0.1"}, {"FC_TASK_ATTEMPT_ID", "2"},     {"FC_FRAMEWORK_ATTEMPT_ID", "0"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(of[name], value) << name;
  EXPECT_TRUE(of["PAI_TASK_ROLE_INSTANCES"].ends_with("ps:48,ps:49"));
  EXPECT_EQ(of.count("PAI_HOST_IP_ps_0"), 0U);
}

TEST(EnvironmentTest, storages_are_told_as_the_role_finds_them) {
  Cluster cluster = small_cluster();
  cluster.checkpoint = "/gpfs/nfs/runs/step-1.h5";
  cluster.roles[1].storages = {{"nfs-1", "/gpfs/nfs", "/mnt/nfs-1"}, {"default", "/gpfs/pai", ""}};
  Environment of = environment_of(cluster, 3);
  EXPECT_EQ(of["LOCKSTEP_STORAGE_nfs_1"], "/mnt/nfs-1");
  EXPECT_EQ(of["LOCKSTEP_STORAGE_default"], "/gpfs/pai");
  EXPECT_EQ(of["PAI_DEFAULT_FS_URI"], "file:///gpfs/pai");
  EXPECT_EQ(of["LOCKSTEP_CHECKPOINT"], "/mnt/nfs-1/runs/step-1.h5");
  EXPECT_EQ(environment_of(cluster, 0)["PAI_DEFAULT_FS_URI"], "file:///");
  EXPECT_EQ(environment_of(cluster, 0)["LOCKSTEP_CHECKPOINT"], cluster.checkpoint);
}

TEST(EnvironmentTest, a_variable_never_has_two_values) {
  Cluster cluster = small_cluster();
  cluster.roles[0].name = "TASK_COUNT_x";  // PAI_TASK_ROLE_<role>_HOST_LIST
  cluster.roles[1].name = "x_HOST_LIST";   // PAI_TASK_ROLE_TASK_COUNT_<role>
  const std::string message = message_of(Failure::usage, [&] { environment_of(cluster, 0); });
  expect_message(message, {"10.0.0.1:20001,10.0.0.1:20006", "3"});
}

TEST(EnvironmentTest, exports_are_what_they_are_whatever_they_hold) {
  Cluster cluster = small_cluster();
  cluster.job.name = "a'b\"c\n$(touch x)`y`\\;|&";
  const std::string text = exports_text(environment_of(cluster, 0));
  EXPECT_NE(text.find(std::string("PAI_JOB_NAME=ada~a'b\"c\n$(touch x)`y`\\;|&") + '\0'), std::string::npos);
  EXPECT_EQ(exports_text({{"A", "1"}, {"B", ""}}), std::string("A=1\0B=\0", 7));
}

TEST(EnvironmentTest, the_table_shows_what_would_steer_a_terminal_by_its_number) {
  EXPECT_EQ(environment_table({{"A", "1"}, {"LONGER", "x\x1b[31m\ny"}}), "A       1\nLONGER  x\\x1b[31m\\x0ay");
  EXPECT_EQ(environment_table({}), "");
}

TEST(EnvironmentTest, one_name_of_a_network_interface_serves_all_libraries) {
  const Environment expected = {{"OMPI_MCA_btl_tcp_if_include", "ib0"},
                                {"OMPI_MCA_oob_tcp_if_include", "ib0"},
                                {"NCCL_SOCKET_IFNAME", "=ib0"},
                                {"GLOO_SOCKET_IFNAME", "ib0"}};
  EXPECT_EQ(interface_environment("ib0", {"lo", "ib0"}, "n1"), expected);
  expect_error(Failure::usage, {"ib7;x"}, [] { interface_environment("ib7;x", {"lo", "eth0"}, "n1"); });
}

}  // namespace lockstep::environment_test
