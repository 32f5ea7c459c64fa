#include "slurm/roles/role_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::role_file_test {

std::vector<Role> parsed(const std::string& roles) {
  return parse_roles(R"({"format": 1, "roles": )" + roles + "}", "roles.json");
}
// The refusal of a file of these roles.
std::string refusal(const std::string& roles) {
  std::string message = message_of(Failure::usage, [&] { parsed(roles); });
  EXPECT_TRUE(message.starts_with("'roles.json' ")) << message;
  return message;
}
// The same of one role with a name, a command and `fields`.
std::string refusal_of(const std::string& fields) {
  return refusal(R"([{"name": "worker", "command": ["program"], )" + fields + "}]");
}

TEST(RoleFileTest, what_is_not_stated_is_as_in_the_platform) {
  const Role role = parsed(R"([{"name": "worker", "instances": 3, "command": ["train_cifar"]}])").at(0);
  EXPECT_EQ(role.name, "worker");
  EXPECT_EQ(role.instances, 3);
  EXPECT_EQ(role.min_failed_instances, 1);
  EXPECT_EQ(role.min_succeeded_instances, 3);
  EXPECT_EQ(role.world, "");
  EXPECT_TRUE(role.ports.empty());
  EXPECT_EQ(parsed(R"([{"min_succeeded_instances": -1, "name": "a", "command": ["b"]}])").at(0).min_succeeded_instances,
            never);
}

TEST(RoleFileTest, a_file_is_read_as_it_was_written) {
  Role server{.name = "ps", .instances = 1, .command = {"/opt/a server", "$(touch x)", "line\nend", "\"'; --"}};
  server.ports = {{"rpc", 1}, {"http", 2}};
  server.min_failed_instances = never;
  Role worker{.name = "_worker2", .instances = 4, .command = {"train_cifar"}, .world = "training"};
  worker.cpus = 8;
  worker.memory_mb = 32768;
  worker.gpus = 2;
  worker.min_failed_instances = 2;
  worker.min_succeeded_instances = never;
  worker.container = {"apptainer", "/images/a b.sif"};
  worker.storages = {{"nfs-1", "/gpfs/nfs", "/mnt/nfs-1"}, {"default", "/gpfs/pai", ""}};
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "roles.json", roles_text({server, worker}));
  const std::vector<Role> roles = read_roles(folder.path() / "roles.json");
  ASSERT_EQ(roles.size(), 2U);
  EXPECT_EQ(roles[0].command, server.command);
  EXPECT_EQ(roles[0].ports, server.ports);
  EXPECT_EQ(roles_text(roles), roles_text({server, worker}));
  EXPECT_EQ(roles[1].container, worker.container);
  ASSERT_EQ(roles[1].storages.size(), 2U);
  EXPECT_EQ(roles[1].storages[0].mount, "/mnt/nfs-1");
}

TEST(RoleFileTest, a_task_of_an_array_runs_one_instance_of_the_only_role) {
  const std::vector<Role> three = parsed(R"([{"name": "worker", "instances": 3, "command": ["x"]}])");
  const Role task = parse_roles(roles_text(role_of_array_task(three, 2)), "roles.json").at(0);
  EXPECT_EQ(task.instances, 1);
  EXPECT_EQ(task.first_instance, 2);
  EXPECT_EQ(all_instances(task), 3);
  EXPECT_EQ(task.min_succeeded_instances, 3);
  expect_error(Failure::usage, {"worker", "task 3", "--array=0-2"}, [&] { role_of_array_task(three, 3); });
  const std::vector<Role> world = parsed(R"([{"name": "worker", "world": "w", "command": ["x"]}])");
  expect_error(Failure::usage, {"world"}, [&] { role_of_array_task(world, 0); });
  expect_error(Failure::usage, {"2 roles"}, [&] { role_of_array_task({three[0], world[0]}, 0); });
  expect_message(refusal_of(R"("first_instance": 1)"), {"worker", "array_instances"});
  expect_message(refusal_of(R"("array_instances": 2, "first_instance": 2)"), {"worker", "first_instance"});
}

TEST(RoleFileTest, each_mistake_is_named) {
  expect_message(refusal("[]"), {"100"});
  expect_message(refusal("[1]"), {});
  expect_message(refusal(R"([{"name": "a-b", "command": ["x"]}])"), {"a-b", "64"});
  expect_message(refusal(R"([{"name": "a", "command": ["x"]}, {"name": "a", "command": ["x"]}])"), {"a"});
  expect_message(refusal(R"([{"name": "a"}])"), {"a"});
  expect_message(refusal(R"([{"name": "a", "command": "x y"}])"), {"command"});
  expect_message(refusal(R"([{"name": "a", "command": ["x", 1]}])"), {"command"});
  expect_message(refusal(R"([{"name": "a", "command": ["x\u0000y"]}])"), {"a"});
  expect_message(refusal(fmt::format(R"([{{"name": "a", "command": ["x", "{}"]}}])", std::string(131072, 'x'))),
                 {"a", "131071"});
  expect_message(refusal_of(R"("instances": 0)"), {"worker", "4096"});
  expect_message(refusal_of(R"("instances": 1.5)"), {"instances"});
  expect_message(refusal_of(R"("instances": 18446744073709551615)"), {"instances"});
  expect_message(refusal_of(R"("cpus": -1)"), {"worker", "1048576"});
  expect_message(refusal_of(R"("instance": 2)"), {"instance"});
  expect_message(refusal_of(R"("min_failed_instances": 2)"), {"worker"});
  expect_message(refusal_of(R"("instances": 2, "min_succeeded_instances": 0)"), {"worker"});
  expect_message(refusal_of(R"("world": "a b")"), {"worker", "a b"});
  expect_message(refusal_of(R"("ports": [1])"), {"ports"});
  expect_message(refusal_of(R"("ports": {"a;b": 1})"), {"worker", "a;b"});
  expect_message(refusal_of(R"("ports": {"http": 0})"), {"worker", "100"});
  expect_message(refusal_of(R"("ports": {"a": 60, "b": 60})"), {"worker", "100"});
  expect_message(refusal_of(R"("container": [])"), {"container"});
  expect_message(refusal_of(R"("container": {"runtime": "apptainer"})"), {"container", "runtime"});
  expect_message(refusal_of(R"("container": {"program": "docker", "image": "/x"})"), {"worker", "docker"});
  expect_message(refusal_of(R"("container": {"program": "apptainer", "image": "x.sif"})"), {"worker", "x.sif"});
  expect_message(refusal_of(R"("storages": {})"), {"storages"});
  expect_message(refusal_of(R"("storages": [{"name": "..", "path": "/x"}])"), {"worker", "'..'"});
  expect_message(refusal_of(R"("storages": [{"name": "a", "path": "/x:y"}])"), {"worker", "/x:y"});
  expect_message(refusal_of(R"("storages": [{"name": "a", "path": "/x", "mount": "y"}])"), {"worker", "'y'"});
  expect_message(refusal_of(R"("storages": [{"name": "a-b", "path": "/x"}, {"name": "a.b", "path": "/x"}])"),
                 {"worker", "LOCKSTEP_STORAGE_a_b"});
  expect_message(
      refusal(R"([{"name": "a", "command": ["x"], "world": "w"}, {"name": "b", "command": ["x"], "world": "w",
                        "container": {"program": "apptainer", "image": "/x"}}])"),
      {"a", "b", "w"});
  expect_message(refusal(R"([{"name": "a", "command": ["x"], "world": "w", "cpus": 2},
                        {"name": "b", "command": ["x"], "world": "w"},
                        {"name": "c", "command": ["x"], "world": "w", "cpus": 2}])"),
                 {"a", "b", "c", "w"});
  expect_message(refusal_of(R"("world": "w", "instances": 4096, "gpus": 2)"), {"8192"});
  expect_message(refusal(R"([{"name": "a", "command": ["x"], "instances": 3000},
                        {"name": "b", "command": ["x"], "instances": 3000}])"),
                 {"6000"});
}

TEST(RoleFileTest, what_is_no_such_file_is_refused) {
  const auto message = [](const std::string& text) {
    return message_of(Failure::usage, [&] { parse_roles(text, "a\x1b[31mname"); });
  };
  expect_message(message("{"), {});
  expect_message(message("[]"), {"'format'", "1"});
  expect_message(message(R"({"format": 2, "roles": []})"), {"'format'", "1"});
  expect_message(message(R"({"format": 1})"), {"'roles'"});
  expect_message(message(R"({"format": 1, "role": []})"), {"'role'"});
  expect_message(message(R"({"format": 1, "roles": [[[[[[[[]]]]]]]]})"), {"nested"});
}

TEST(RoleFileTest, no_damage_does_more_than_be_refused) {
  Role role{.name = "worker", .instances = 2, .command = {"train_cifar", "--data", "data/cifar 10"}};
  role.ports = {{"SynPort", 1}};
  const std::string whole = roles_text({role, Role{.name = "ps", .command = {"server"}, .world = "w"}});
  for (std::uint64_t round = 0; round < mutation_rounds(2000); ++round) {
    try {
      check_roles(parse_roles(mutated(whole, round), "roles.json"));
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::usage);
    }
  }
}

}  // namespace lockstep::role_file_test
