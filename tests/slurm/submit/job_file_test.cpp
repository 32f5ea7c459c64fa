#include "slurm/submit/job_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"

namespace lockstep::job_file_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

const std::string header = "protocolVersion: 2\nname: a-job_1\ntype: job\n";  // lines 1 to 3
const std::string worker =
    "taskRoles:\n  worker:\n    instances: 2\n    resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 1}\n"
    "    commands:\n      - train_cifar\n";

JobFile job_of(const std::string& text) { return parse_job_file(text, "job.yaml"); }
std::string refusal_of(const std::string& text) {
  return message_of(Failure::usage, [&] { job_of(text); });
}
std::string script_of(const JobFile& job) { return job.roles.at(0).command.at(2); }

std::string job_with(const std::string& lines) { return header + lines + worker; }

std::string role_with(const std::string& lines) {
  return header + "taskRoles:\n  worker:\n    instances: 2\n" + lines +
         "    resourcePerInstance: {cpu: 1}\n    commands: [x]\n";
}

// A job whose worker has this command, and parameters (lines of YAML, indented by two spaces).
std::string with_command(const std::string& command, const std::string& parameters) {
  return header + "parameters:\n" + parameters +
         "taskRoles:\n  worker:\n    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\n    commands:\n      - " +
         command + "\n";
}

constexpr const char* whole = R"(protocolVersion: "2"
name: whole
type: job
version: 1.0
contributor: Alice
description: all that is taken
jobRetryCount: 3
prerequisites:
  - {protocolVersion: 2, name: image, type: dockerimage, uri: openpai/x, version: latest, contributor: A}
  - {name: numbers, type: data, uri: ["https://host/a?b.tar", "second"]}
  - {name: net, type: script, uri: github.com/x, version: 84820935}
  - {name: model, type: output, uri: "hdfs://x/y", description: none}
parameters:
  epochs: 2
  note: it's $(not) run
secrets:
  token: s3cr't
taskRoles:
  ps:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1000, gpu: 0, ports: {rpc: 1, web: 2}}
    completion: {minFailedInstances: 1, minSucceededInstances: -1}
    commands: [serve]
  worker:
    instances: 4
    taskRetryCount: 0
    dockerImage: image
    data: numbers
    script: net
    output: model
    extraContainerOptions: {shmMB: 64}
    resourcePerInstance: {cpu: 2, memoryMB: 16384, gpu: 1}
    completion: {minFailedInstances: 2, minSucceededInstances: 0}
    commands:
      - train_cifar --epochs <% $parameters.epochs %> --data "<% $data.uri[0] %>"
      - >
        echo <% $secrets.token %>
        <% $script.version %>
deployments:
  - name: other
    version: 1.0
    taskRoles: {ps: {preCommands: [nothing]}}
  - name: prod
    taskRoles: {worker: {preCommands: [fetch], postCommands: [store]}}
defaults: {virtualCluster: gpus, deployment: prod}
extras:
  submitFrom: here
  gangAllocation: true
  com.microsoft.pai.runtimeplugin:
    - plugin: cmd
      parameters:
        callbacks:
          - {event: taskStarts, commands: [first]}
          - {event: taskSucceeds, commands: [last]}
  lockstep: {world: [worker], output: runs/a b}
)";

TEST(JobFileTest, takes_every_field) {
  const JobFile job = job_of(whole);
  EXPECT_EQ(job.name, "whole");
  EXPECT_EQ(job.job_retry_count, 3);
  EXPECT_EQ(job.virtual_cluster, "gpus");
  EXPECT_EQ(job.output, "runs/a b");
  EXPECT_THAT(job.parameters,
              ElementsAre(Pair("LOCKSTEP_PARAMETER_epochs", "2"), Pair("LOCKSTEP_PARAMETER_note", "it's $(not) run")));
  EXPECT_THAT(job.secrets, ElementsAre(Pair("LOCKSTEP_SECRET_token", "s3cr't")));
  ASSERT_EQ(job.roles.size(), 2U);
  const Role& ps = job.roles[0];
  EXPECT_EQ(ps.name, "ps");
  EXPECT_EQ(ps.instances, 1);
  EXPECT_THAT(ps.ports, ElementsAre(Pair("rpc", 1), Pair("web", 2)));
  EXPECT_EQ(ps.min_succeeded_instances, never);
  EXPECT_EQ(ps.world, "");
  EXPECT_THAT(ps.command, ElementsAre("env", "-u", "LOCKSTEP_SECRET_token", "bash", "-c",
                                      AllOf(HasSubstr("\nset -e\nfirst\n' ps || exit\nserve\n"),
                                            EndsWith("\nset -e\nlast\n' ps || exit\n")),
                                      "ps"));
  const Role& role = job.roles[1];
  EXPECT_EQ(role.instances, 4);
  EXPECT_EQ(role.cpus, 2);
  EXPECT_EQ(role.memory_mb, 16384);
  EXPECT_EQ(role.gpus, 1);
  EXPECT_EQ(role.min_failed_instances, 2);
  EXPECT_EQ(role.min_succeeded_instances, 4) << "0 is not set, and then all";
  EXPECT_EQ(role.world, "world");
  EXPECT_THAT(role.command.at(2), HasSubstr("\nset -E\nexport LOCKSTEP_data_uri_0='https://host/a?b.tar'\nbash -c "));
  EXPECT_THAT(role.command.at(2),
              HasSubstr("\nfirst\n' worker || exit\nfetch\ntrain_cifar --epochs 2 --data \"${LOCKSTEP_data_uri_0}\"\n"
                        "echo \"${LOCKSTEP_SECRET_token}\" 84820935\n\nstore\n"));
  EXPECT_THAT(role.command.at(2), Not(HasSubstr("s3cr"))) << "the value of a secret stands nowhere";
}

TEST(JobFileTest, says_what_does_nothing_under_slurm) {
  EXPECT_THAT(job_of(header + worker).warnings, IsEmpty());
  const JobFile job = job_of(header + R"(prerequisites: [{name: i, type: dockerimage, uri: u, auth: {}}]
taskRoles:
  worker:
    dockerImage: i
    taskRetryCount: 2
    extraContainerOptions: {shmMB: 64, infiniband: true}
    resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 1}
    commands: [train_cifar]
extras:
  hivedScheduler: {jobPriorityClass: prod}
  jobStatusChangeNotification: {running: true}
  com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: {userssh: {}}}, {plugin: tensorboard}]
)");
  struct Warning {
    const char* line;
    const char* subject;
  };
  const std::vector<Warning> expected = {{"line 4", "'auth'"},
                                         {"line 4", "'i'"},
                                         {"line 13", "'hivedScheduler'"},
                                         {"line 14", "'jobStatusChangeNotification'"},
                                         {"line 15", "'userssh'"},
                                         {"line 15", "'tensorboard'"},
                                         {"line 9", "'shmMB'"},
                                         {"line 9", "'infiniband'"},
                                         {"line 8", "'taskRetryCount'"}};
  ASSERT_EQ(job.warnings.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expect_message(job.warnings[i], {"'job.yaml'", expected[i].line, expected[i].subject});
  }
}

TEST(JobFileTest, a_refusal_names_the_line) {
  struct Refusal {
    const char* name;
    std::string text;
    std::string subject;  // that the message names
  };
  const std::vector<Refusal> rows = {
      {"no map", "[1]", "line 1"},
      {"typing mistake", job_with("jobRetryCuont: 1\n"), "line 4"},
      {"version 1", "protocolVersion: 1\nname: a\ntype: job\n" + worker, "line 1"},
      {"no version", "name: a\ntype: job\n" + worker, "line 1"},
      {"type", "protocolVersion: 2\nname: a\ntype: data\n" + worker, "line 3"},
      {"name", "protocolVersion: 2\nname: a;b\ntype: job\n" + worker, "line 2"},
      {"retries", job_with("jobRetryCount: -1\n"), "line 4"},
      {"cluster", job_with("defaults: {virtualCluster: \"a --wrap=x\"}\n"), "line 4"},
      {"no roles", header + "taskRoles: {}\n", "line 4"},
      {"role name", header + "taskRoles: {1a: {}}\n", "line 4"},
      {"role field", role_with("    replicas: 1\n"), "line 7"},
      {"instances", header + "taskRoles:\n  worker:\n    instances: 0\n", "line 6"},
      {"completion", role_with("    completion: {minFailedInstances: 3}\n"), "line 7"},
      {"image", role_with("    dockerImage: nobody\n"), "line 7"},
      {"no resources", header + "taskRoles: {worker: {commands: [x]}}\n", "line 4"},
      {"no commands", header + "taskRoles: {worker: {resourcePerInstance: {}}}\n", "line 4"},
      {"port label", header + "taskRoles: {w: {resourcePerInstance: {ports: {a-b: 1}}, commands: [x]}}\n", "line 4"},
      {"prerequisite", job_with("prerequisites:\n  - {type: data}\n"), "line 5"},
      {"prerequisite type", job_with("prerequisites:\n  - {type: code, name: x}\n"), "line 5"},
      {"prerequisite twice", job_with("prerequisites:\n  - {type: data, name: x}\n  - {type: data, name: x}\n"),
       "line 6"},
      {"prerequisite plugin", job_with("prerequisites:\n  - {type: script, name: x, plugin: y}\n"), "line 5"},
      {"deployment", job_with("defaults: {deployment: prod}\n"), "line 4"},
      {"deployed role", job_with("deployments:\n  - {name: x, taskRoles: {boss: {}}}\n"), "line 5"},
      {"gang", job_with("extras: {gangAllocation: no}\n"), "line 4"},
      {"plugin", job_with("extras: {com.microsoft.pai.runtimeplugin: [{plugin: git}]}\n"), "line 4"},
      {"unknown plugin", job_with("extras: {com.microsoft.pai.runtimeplugin: [{plugin: x}]}\n"), "line 4"},
      {"event",
       job_with("extras: {com.microsoft.pai.runtimeplugin: [{plugin: cmd, parameters: {callbacks: "
                "[{event: x, commands: []}]}}]}\n"),
       "line 4"},
      {"output", job_with("extras: {lockstep: {output: runs/<% $parameters.x %>}}\n"), "line 4"},
      {"world", job_with("extras: {lockstep: {world: [boss]}}\n"), "line 4"},
      {"parameter name", with_command("x", "  \"a b\": 1\n"), "line 5"},
      {"parameter of a name", with_command("x", "  a: {\"b.c\": 1}\n"), "line 5"},
      {"parameters of one variable", with_command("x", "  a-b: 1\n  a_b: 2\n"), "line 6"},
      {"parameters", with_command("x", "  - a\n"), "line 5"},
      {"several values", with_command("x <% $parameters.a %>", "  a: {b: 1, c: 2}\n"), "line 10"},
      {"arithmetic", with_command("if [[ <% $parameters.a %> -gt 3 ]]; then x; fi", "  a: 'x[$(y)]'\n"), "line 10"},
      {"computed", with_command("n=\"<% $parameters.a %>\"; ((n > 3))", "  a: 'x[$(y)]'\n"), "line 10"},
      {"reference", with_command("x <% $parameters.b %>", "  a: 1\n"), "line 10"},
      {"open reference", with_command("x <% $parameters.a", "  a: 1\n"), "line 10"},
      {"prerequisite without a plugin", job_with("prerequisites:\n  - {type: script, name: x, preCommands: [y]}\n"),
       "line 5"},
      {"prerequisite of two types",
       "prerequisites: [{type: data, name: x}, {type: output, name: x}]\n" + role_with("    prerequisites: [x]\n"),
       "line 8"},
      {"role of a plugin", job_with("extras: {com.microsoft.pai.runtimeplugin: [{plugin: cmd, taskroles: [boss]}]}\n"),
       "line 4"},
      {"nodes", job_with("extras: {lockstep: {nodes: 3}}\n"), "line 4"},
      {"unquoted", with_command("echo $(cat <% $parameters.a %>)", "  a: b;c\n"), "line 10"},
      {"several words", with_command("mpirun <% $parameters.a %> train_cifar", "  a: -x b;c\n"), "line 10"},
      {"unknown command", with_command("flock \"<% $parameters.a %>\"", "  a: b;c\n"), "line 10"},
      {"pipe", with_command("echo \"<% $parameters.a %>\" | bash", "  a: b;c\n"), "line 10"},
      {"stored", with_command("n=\"<% $parameters.a %>\"; x", "  a: b;c\n"), "line 10"},
      {"here document", with_command("|-\n        x <<E\n        <% $parameters.a %>\n        E", "  a: b;c\n"),
       "line 10"},
  };
  for (const Refusal& row : rows) {
    SCOPED_TRACE(row.name);
    expect_message(refusal_of(row.text), {"job.yaml", row.subject});
  }
}

TEST(JobFileTest, a_retry_count_of_the_platform_is_taken) {
  const JobFile job = job_of(role_with("    taskRetryCount: -2\n    completion: {minSucceededInstances: null}\n"));
  EXPECT_THAT(job.warnings, ElementsAre(AllOf(HasSubstr("line 7: "), HasSubstr("'taskRetryCount'"))));
  EXPECT_EQ(job.roles.at(0).min_succeeded_instances, 2);
}

TEST(JobFileTest, a_secret_stands_in_no_command_and_in_no_message) {
  const std::string text = job_with("secrets: {token: hunter2}\n");
  const std::string plain = text + "      - tell <% $secrets.token %>\n";
  EXPECT_THAT(script_of(job_of(plain)),
              AllOf(HasSubstr("tell \"${LOCKSTEP_SECRET_token}\""), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(refusal_of(text + "      - x `<% $secrets.token %>`\n"), Not(HasSubstr("hunter2")));
  expect_message(refusal_of(job_with("secrets: [hunter2]\n")), {"job.yaml"});
}

TEST(JobFileTest, a_damaged_file_is_a_job_or_a_refusal) {
  const std::uint64_t rounds = mutation_rounds(5'000);
  int taken = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    try {
      const JobFile job = job_of(mutated(whole, round));
      for (const Role& role : job.roles) ASSERT_TRUE(is_role_name(role.name));
      ++taken;
    } catch (const Error& error) {
      ASSERT_EQ(error.failure(), Failure::usage) << error.what();
    }
  }
  EXPECT_GT(taken, 0);
}

}  // namespace lockstep::job_file_test
