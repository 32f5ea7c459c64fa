#include "slurm/submit/job_script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/program.hpp"

namespace lockstep::job_script_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

JobFile two_roles() {
  return parse_job_file(
      "{protocolVersion: 2, name: two, type: job, jobRetryCount: 4, secrets: {token: it's}, taskRoles: {"
      "ps: {resourcePerInstance: {cpu: 1, memoryMB: 1000}, commands: [serve]}, "
      "worker: {instances: 3, resourcePerInstance: {cpu: 4, memoryMB: 999, gpu: 2}, commands: [train]}}}",
      "job.yaml");
}

TEST(JobScriptTest, roles_with_different_resources_are_components_of_a_heterogeneous_job) {
  EXPECT_THAT(job_script(two_roles(), {"/a lib/slurm", ""}),
              StartsWith("#!/usr/bin/env bash\n#SBATCH --job-name=two\n#SBATCH --requeue\n#SBATCH --open-mode=append\n"
                         "#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=1\n#SBATCH --mem-per-cpu=1000M\n"
                         "#SBATCH hetjob\n"
                         "#SBATCH --ntasks=3\n#SBATCH --cpus-per-task=4\n#SBATCH --mem-per-cpu=250M\n"
                         "#SBATCH --gpus-per-task=2\n# Written by submit_job.\nlibrary='/a lib/slurm'\n"
                         "source \"$library/job.sh\" || exit 2\nJOB_RETRY_COUNT=4\n"));
  EXPECT_THAT(two_roles().warnings, testing::ElementsAre(HasSubstr("2 components")));
}

std::string options_of(const std::string& roles, const std::string& more = "") {
  const JobFile job =
      parse_job_file("{protocolVersion: 2, name: some, type: job, taskRoles: {" + roles + "}" + more + "}", "job.yaml");
  const std::string script = job_script(job, {"/lib", ""});
  const std::size_t begin = script.find("#SBATCH --ntasks");
  return script.substr(begin, script.find("# Written") - begin);
}

TEST(JobScriptTest, roles_with_equal_resources_share_a_component) {
  const auto role = [](const std::string& name, const std::string& resources) {
    return name + ": {instances: 2, resourcePerInstance: {" + resources + "}, commands: [x]}";
  };
  EXPECT_EQ(options_of(role("a", "cpu: 2, memoryMB: 100") + ", " + role("b", "cpu: 2, memoryMB: 100")),
            "#SBATCH --ntasks=4\n#SBATCH --cpus-per-task=2\n#SBATCH --mem-per-cpu=50M\n");
  EXPECT_EQ(options_of(role("a", "cpu: 2") + ", " + role("b", "cpu: 1, gpu: 1") + ", " + role("c", "cpu: 2")),
            "#SBATCH --ntasks=4\n#SBATCH --cpus-per-task=2\n#SBATCH hetjob\n#SBATCH --ntasks=2\n"
            "#SBATCH --cpus-per-task=1\n#SBATCH --gpus-per-task=1\n");
}

// Each rank needs a CPU.
TEST(JobScriptTest, an_instance_in_a_world_has_a_cpu_for_each_gpu) {
  const std::string role = "worker: {instances: 2, resourcePerInstance: {cpu: 1, gpu: 2}, commands: [x]}";
  EXPECT_EQ(options_of(role), "#SBATCH --ntasks=2\n#SBATCH --cpus-per-task=1\n#SBATCH --gpus-per-task=2\n");
  const std::string world = ", extras: {lockstep: {world: [worker]}}";
  EXPECT_EQ(options_of(role, world), "#SBATCH --ntasks=2\n#SBATCH --cpus-per-task=2\n#SBATCH --gpus-per-task=2\n");
  const JobFile job =
      parse_job_file("{protocolVersion: 2, name: some, type: job, taskRoles: {" + role + "}" + world + "}", "job.yaml");
  EXPECT_THAT(job.warnings, testing::ElementsAre(HasSubstr("4 ranks")));
}

TEST(JobScriptTest, independent_instances_are_tasks_of_an_array) {
  JobFile job = parse_job_file(
      "{protocolVersion: 2, name: many, type: job, secrets: {token: t}, taskRoles: {worker: {instances: 50, "
      "taskRetryCount: 2, completion: {minFailedInstances: 3}, resourcePerInstance: {cpu: 2, memoryMB: 100}, commands: "
      "[train]}}, extras: {gangAllocation: false}}",
      "job.yaml");
  const std::string script = job_script(job, {"/lib", "/a b/secrets"});
  EXPECT_THAT(
      script,
      HasSubstr("\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=2\n#SBATCH --mem-per-cpu=50M\n#SBATCH --array=0-49\n"));
  EXPECT_THAT(script, HasSubstr("source \"$library/job_array.sh\" || exit 2\nJOB_RETRY_COUNT=2\n"));
  EXPECT_THAT(script, HasSubstr("\nsecrets='/a b/secrets'\nbegin_array_task 3 50\nbegin_attempt run_roles\nif ! "));
  EXPECT_THAT(script, Not(HasSubstr("remove_secrets"))) << "other tasks need the secrets";
  EXPECT_THAT(script, HasSubstr(" --array-task \"$SLURM_ARRAY_TASK_ID\"\nend_attempt $?\n"));
  EXPECT_EQ(run_program({"bash", "-n", "-c", script}).exit_code, 0);
  job.array->throttle = 10;
  EXPECT_THAT(job_script(job, {"/lib", ""}), HasSubstr("\n#SBATCH --array=0-49%10\n"));
}

TEST(JobScriptTest, mpirun_uses_the_ssh_between_instances_if_the_job_has_it) {
  JobFile job = two_roles();
  EXPECT_THAT(job_script(job, {"/lib", ""}), Not(HasSubstr("instance_ssh")));
  job.has_ssh = true;
  EXPECT_THAT(job_script(job, {"/lib", ""}),
              HasSubstr("\nPATH=$library/instance_ssh:$PATH\nexport OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=ssh "));
}

TEST(JobScriptTest, secrets_are_read_by_the_job_and_stand_in_a_file_alone) {
  const JobFile job = two_roles();
  const std::string script = job_script(job, {"/lib", "/a b/secrets"});
  EXPECT_THAT(script, HasSubstr("\nsecrets='/a b/secrets'\n"));
  EXPECT_THAT(script, Not(HasSubstr("it's")));
  // Slurm 24.11 starts a finished job again, which has removed its secrets.
  EXPECT_LT(script.find("begin_attempt"), script.find("source \"$secrets\""));
  EXPECT_EQ(secrets_text(job), "export LOCKSTEP_SECRET_token='it'\\''s'\n");
}

// Every role had every secret in its environment.
TEST(JobScriptTest, a_role_has_the_secrets_that_its_commands_name) {
  const JobFile job = parse_job_file(
      "{protocolVersion: 2, name: two, type: job, secrets: {a: x, ab: y}, taskRoles: {"
      "none: {resourcePerInstance: {cpu: 1, memoryMB: 100}, commands: [serve]}, "
      "long: {resourcePerInstance: {cpu: 1, memoryMB: 100}, commands: ['login <% $secrets.ab %>']}, "
      "both: {resourcePerInstance: {cpu: 1, memoryMB: 100}, commands: ['echo $LOCKSTEP_SECRET_a <% $secrets.ab %>']}}}",
      "job.yaml");
  std::map<std::string, std::vector<std::string>> before_shell;
  for (const Role& role : job.roles) {
    ASSERT_GE(role.command.size(), 4);
    before_shell[role.name] = {role.command.begin(), role.command.end() - 4};
    EXPECT_EQ(*(role.command.end() - 4), "bash");
  }
  using testing::ElementsAre;
  EXPECT_THAT(before_shell["none"], ElementsAre("env", "-u", "LOCKSTEP_SECRET_a", "-u", "LOCKSTEP_SECRET_ab"));
  EXPECT_THAT(before_shell["long"], ElementsAre("env", "-u", "LOCKSTEP_SECRET_a"));
  EXPECT_TRUE(before_shell["both"].empty());
}

TEST(JobScriptTest, checkpoints_are_named_where_the_file_says_where_they_are) {
  JobFile job = two_roles();
  EXPECT_THAT(job_script(job, {"/lib", ""}), HasSubstr("\nbegin_attempt run_roles\n"));
  job.output = "runs/it's";
  const std::string script = job_script(job, {"/lib", ""});
  EXPECT_THAT(
      script,
      HasSubstr("\nbegin_attempt run_roles --output 'runs/it'\\''s' --checkpoints 'runs/it'\\''s/checkpoints'\n"));
  EXPECT_THAT(script, HasSubstr(" --checkpoints \"$checkpoints\"\nend_attempt $?\n"));
  EXPECT_EQ(run_program({"bash", "-n", "-c", script}).exit_code, 0);
}

// Without 'output', nothing told whether an attempt had made progress.
TEST(JobScriptTest, checkpoints_are_found_in_the_commands_of_a_training) {
  const JobFile job = parse_job_file(
      "{protocolVersion: 2, name: one, type: job, parameters: {run: 20}, taskRoles: {worker: {resourcePerInstance: "
      "{cpu: 1, memoryMB: 100}, commands: ['train_cifar --data d --output runs/<% $parameters.run %>', echo done]}}}",
      "job.yaml");
  EXPECT_THAT(job_script(job, {"/lib", ""}),
              HasSubstr("\nbegin_attempt run_roles --output 'runs/20' --checkpoints 'runs/20/checkpoints'\n"));
}

}  // namespace lockstep::job_script_test
