// Commands of plugins and prerequisites, in the shell that runs those of a role.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "slurm/submit/job_file.hpp"
#include "support/program.hpp"

namespace lockstep::job_plugins_test {

// `plugin`: fields of the plugin cmd, and its callbacks.
ProgramResult run_role(const std::string& plugin, const std::string& commands) {
  const JobFile job = parse_job_file(
      "{protocolVersion: 2, name: a, type: job, parameters: {x: a b}, secrets: {token: hunter2}, "
      "extras: {com.microsoft.pai.runtimeplugin: [{plugin: cmd, " +
          plugin + "}]}, taskRoles: {worker: {resourcePerInstance: {cpu: 1, memoryMB: 1}, commands: " + commands +
          "}}}",
      "job.yaml");
  return run_program(job.roles.at(0).command);
}

std::string plugin(const std::string& fields, const std::string& before, const std::string& after) {
  return fields + "parameters: {callbacks: [{event: taskStarts, commands: [" + before +
         "]}, {event: taskSucceeds, commands: [" + after + "]}]}";
}

TEST(JobPluginsTest, a_plugin_that_fails_ends_the_role_with_its_code) {
  for (const std::string fields : {"", "failurePolicy: fail, "}) {
    const ProgramResult before = run_role(plugin(fields, "sh -c 'exit 4', echo next", "echo last"), "[echo own]");
    EXPECT_EQ(before.exit_code, 4);
    EXPECT_EQ(before.output, "");
    const ProgramResult after = run_role(plugin(fields, "echo first", "sh -c 'exit 5', echo next"), "[echo own]");
    EXPECT_EQ(after.exit_code, 5);
    EXPECT_EQ(after.output, "first\nown\n");
  }
}

TEST(JobPluginsTest, failures_of_a_plugin_may_be_ignored) {
  const ProgramResult ended =
      run_role(plugin("failurePolicy: ignore, ", "'false', echo next, exit 4", "sh -c 'exit 5'"), "[echo own]");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.output, "next\nown\n");
}

// The commands for taskSucceeds ran, and the code of the last one, 0, said that the job was done.
TEST(JobPluginsTest, a_role_that_failed_has_not_succeeded) {
  for (const std::string commands : {"[sh -c 'exit 3']", "[set -e, sh -c 'exit 3', echo own]"}) {
    const ProgramResult ended = run_role(plugin("", "echo first", "echo last"), commands);
    EXPECT_EQ(ended.exit_code, 3) << commands;
    EXPECT_EQ(ended.output, "first\n") << commands;
  }
}

TEST(JobPluginsTest, a_plugin_has_a_shell_of_its_own) {
  ::setenv("PAI_WORK_DIR", "/var", 1);
  const ProgramResult ended =
      run_role(plugin("", "cd /, set -u, NAME=there, echo <% $parameters.x %>", "'echo ${NAME:-not there} in $PWD'"),
               "[cd /tmp, 'echo \"${NAME:-not there}\" in $PWD', set -x]");
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(ended.output, "a b\nnot there in /tmp\nnot there in /var\n");
  EXPECT_EQ(ended.errors, "") << "the plugin's commands are not the user's";
  ::unsetenv("PAI_WORK_DIR");
}

// A program that stops at Slurm's request, in a plugin.
TEST(JobPluginsTest, a_stop_in_a_plugin_ends_the_role) {
  const ProgramResult ended =
      run_role(plugin("", "\"sh -c 'kill -USR1 $PPID; exit 75'\", echo next", "echo last"), "[echo own]");
  EXPECT_EQ(ended.exit_code, 75);
  EXPECT_EQ(ended.output, "");
}

TEST(JobPluginsTest, a_secret_that_only_a_plugin_names_is_in_its_environment) {
  ::setenv("LOCKSTEP_SECRET_token", "hunter2", 1);
  EXPECT_EQ(run_role(plugin("", "echo <% $secrets.token %>", ""), "[echo own]").output, "hunter2\nown\n");
  EXPECT_EQ(run_role(plugin("", "'echo $LOCKSTEP_SECRET_'", ""), "[env | grep -c hunter2 || echo none]").output,
            "\n0\nnone\n");
  ::unsetenv("LOCKSTEP_SECRET_token");
}

}  // namespace lockstep::job_plugins_test
