#include "slurm/roles/placement.hpp"

#include <gtest/gtest.h>

#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::placement_test {

using Words = std::vector<std::string>;

Role role(const std::string& name, std::int64_t instances, const std::string& world = "") {
  return {.name = name, .instances = instances, .command = {"program; reboot"}, .world = world};
}
Words nodes_of(const std::vector<InstanceSlot>& slots) {
  Words nodes;
  for (const InstanceSlot& slot : slots) nodes.push_back(std::to_string(slot.component) + slot.node);
  return nodes;
}

TEST(PlacementTest, tasks_lie_as_slurm_counts_them) {
  EXPECT_EQ(task_nodes("n[1-3]", "2(x2),1"), (Words{"n1", "n1", "n2", "n2", "n3"}));
  EXPECT_EQ(task_nodes("n7", "3"), (Words{"n7", "n7", "n7"}));
  EXPECT_EQ(task_nodes("n[1-3]", "1048576(x3)").size(), 4096U);
  for (const char* counts :
       {"", "2", "2(x4)", "0(x3)", "2(x0),1", "2(x2", "x", "1,,1,1", "-1,1,1", "1(x99999999999)", "$(id)(x3)"}) {
    EXPECT_NE(message_of(Failure::bad_data, [&] { task_nodes("n[1-3]", counts); }), "no error") << counts;
  }
}

TEST(PlacementTest, instances_take_the_tasks_one_after_the_other) {
  const std::vector<Role> roles = {role("ps", 1), role("worker", 3)};
  EXPECT_EQ(nodes_of(place_instances(roles, {{"n[1-2]", "2(x2)"}})), (Words{"0n1", "0n1", "0n2", "0n2"}));
  EXPECT_EQ(nodes_of(place_instances(roles, {{"n1", "1"}, {"n[2-3]", "2,1"}})), (Words{"0n1", "1n2", "1n2", "1n3"}));
}

TEST(PlacementTest, what_does_not_fit_is_told_with_what_would) {
  const std::vector<Role> roles = {role("ps", 1), role("worker", 3)};
  expect_error(Failure::usage, {"--ntasks", "worker"}, [&] { place_instances(roles, {{"n[1-2]", "1(x2)"}}); });
  expect_error(Failure::usage, {}, [&] { place_instances(roles, {{"n1", "4"}, {"n2", "4"}, {"n3", "4"}}); });
}

TEST(PlacementTest, roles_with_the_same_resources_share_a_component) {
  std::vector<Role> roles = {role("chief", 1), role("ps", 1), role("worker", 2)};
  roles[0].gpus = roles[2].gpus = 1;
  EXPECT_EQ(resource_groups(roles), (std::vector<std::size_t>{0, 1, 0}));
  EXPECT_EQ(nodes_of(place_instances(roles, {{"n[1-2]", "2,1"}, {"n3", "1"}})), (Words{"0n1", "1n3", "0n1", "0n2"}));
  EXPECT_EQ(nodes_of(place_instances(roles, {{"n1", "1"}, {"n2", "1"}, {"n3", "2"}})),
            (Words{"0n1", "1n2", "2n3", "2n3"}));
  EXPECT_EQ(nodes_of(place_instances(roles, {{"n1", "4"}})), (Words{"0n1", "0n1", "0n1", "0n1"}));
  roles[1].memory_mb = roles[2].cpus = 1;
  EXPECT_EQ(resource_groups(roles), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(PlacementTest, a_world_within_a_component_has_the_same_resources) {
  std::vector<Role> roles = {role("a", 1, "w"), role("b", 1, "w")};
  roles[1].cpus = 2;
  expect_error(Failure::usage, {"a", "b", "w"}, [&] { place_instances(roles, {{"n1", "2"}}); });
  EXPECT_EQ(nodes_of(place_instances(roles, {{"n1", "1"}, {"n2", "1"}})), (Words{"0n1", "1n2"}));
}

TEST(PlacementTest, a_world_is_one_step_and_every_other_instance_one_of_its_own) {
  const std::vector<RoleStep> steps = steps_of({role("a", 2, "w"), role("b", 2), role("c", 1, "w")});
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].name, "w");
  EXPECT_EQ(steps[0].places, (std::vector<std::size_t>{0, 1, 4}));
  EXPECT_EQ(steps[1].name, "b-0");
  EXPECT_EQ(steps[2].name, "b-1");
  EXPECT_EQ(steps[2].places, (std::vector<std::size_t>{3}));
}

TEST(PlacementTest, srun_is_told_the_node_of_each_task_and_nothing_of_a_command) {
  std::vector<Role> roles = {role("ps", 1), role("worker", 3, "training")};
  roles[1].cpus = 4;
  roles[1].memory_mb = 100;
  roles[1].gpus = 1;
  const std::vector<InstanceSlot> slots = place_instances(roles, {{"n[1-2]", "2(x2)"}});
  const std::vector<RoleStep> steps = steps_of(roles);
  EXPECT_EQ(
      srun_arguments(steps[0], roles, slots, "pmix", "/a b/start"),
      (Words{"srun", "--mpi=pmix", "--export=ALL", "--kill-on-bad-exit=1", "--job-name=ps-0", "--exact",
             "--distribution=arbitrary", "--ntasks=1", "--nodelist=n1", "--cpus-per-task=1", "--mem=0", "/a b/start"}));
  EXPECT_EQ(srun_arguments(steps[1], roles, slots, "pmix", "start"),
            (Words{"srun", "--mpi=pmix", "--export=ALL", "--kill-on-bad-exit=1", "--job-name=training", "--exact",
                   "--distribution=arbitrary", "--label", "--ntasks=3", "--nodelist=n1,n2,n2", "--cpus-per-task=4",
                   "--mem=200", "--gpus-per-task=1", "--gpu-bind=per_task:1", "start"}));
}

TEST(PlacementTest, an_instance_has_its_gpus_and_in_a_world_a_rank_for_each) {
  std::vector<Role> roles = {role("worker", 2, "training")};
  roles[0].cpus = 5;
  roles[0].memory_mb = 100;
  roles[0].gpus = 2;
  const std::vector<InstanceSlot> slots = place_instances(roles, {{"n[1-2]", "1(x2)"}});
  const Words begin = {"srun",
                       "--mpi=pmix",
                       "--export=ALL",
                       "--kill-on-bad-exit=1",
                       "--job-name=training",
                       "--exact",
                       "--distribution=arbitrary"};
  Words words = begin;
  words.insert(words.end(), {"--label", "--ntasks=4", "--nodelist=n1,n1,n2,n2", "--cpus-per-task=2", "--mem=100",
                             "--gpus-per-task=1", "--gpu-bind=per_task:1", "start"});
  EXPECT_EQ(srun_arguments(steps_of(roles).at(0), roles, slots, "pmix", "start"), words);
  roles[0].cpus = 0;  // those of a task
  const std::vector<InstanceSlot> large = place_instances(roles, {{"n1", "2", 8}});
  words = begin;
  words.insert(words.end(), {"--label", "--ntasks=4", "--nodelist=n1,n1,n1,n1", "--cpus-per-task=4", "--mem=200",
                             "--gpus-per-task=1", "--gpu-bind=per_task:1", "start"});
  EXPECT_EQ(srun_arguments(steps_of(roles).at(0), roles, large, "pmix", "start"), words);
  roles[0].world = "";
  words = begin;
  words[4] = "--job-name=worker-1";
  words.insert(words.end(), {"--ntasks=1", "--nodelist=n1", "--cpus-per-task=8", "--mem=100", "--gpus-per-task=2",
                             "--gpu-bind=per_task:2", "start"});
  EXPECT_EQ(srun_arguments(steps_of(roles).at(1), roles, large, "pmix", "start"), words);
}

TEST(PlacementTest, a_world_over_components_is_one_step_of_both) {
  const std::vector<Role> roles = {role("ps", 1, "w"), role("worker", 2, "w")};
  const std::vector<InstanceSlot> slots = place_instances(roles, {{"n1", "1"}, {"n[2-3]", "1(x2)", 4}});
  EXPECT_EQ(srun_arguments(steps_of(roles).at(0), roles, slots, "pmix", "start"), (Words{"srun",
                                                                                         "--mpi=pmix",
                                                                                         "--export=ALL",
                                                                                         "--kill-on-bad-exit=1",
                                                                                         "--job-name=w",
                                                                                         "--het-group=0",
                                                                                         "--exact",
                                                                                         "--distribution=arbitrary",
                                                                                         "--label",
                                                                                         "--ntasks=1",
                                                                                         "--nodelist=n1",
                                                                                         "--cpus-per-task=1",
                                                                                         "--mem=0",
                                                                                         "start",
                                                                                         ":",
                                                                                         "--het-group=1",
                                                                                         "--exact",
                                                                                         "--distribution=arbitrary",
                                                                                         "--label",
                                                                                         "--ntasks=2",
                                                                                         "--nodelist=n2,n3",
                                                                                         "--cpus-per-task=4",
                                                                                         "--mem=0",
                                                                                         "start"}));
}

}  // namespace lockstep::placement_test
