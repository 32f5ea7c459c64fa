// Requests to stop the shell that runs the commands of a role.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "slurm/submit/job_file.hpp"
#include "support/program.hpp"

namespace lockstep::role_stop_test {

// The role's own commands, between those of a plugin and of a deployment.
ProgramResult run_role(const std::string& commands) {
  const JobFile job = parse_job_file(
      "{protocolVersion: 2, name: a, type: job, deployments: [{name: d, taskRoles: {worker: {postCommands: [echo "
      "post]}}}],"
      " defaults: {deployment: d}, extras: {com.microsoft.pai.runtimeplugin: [{plugin: cmd, parameters: {callbacks: "
      "[{event: taskStarts, commands: [echo first]}, {event: taskSucceeds, commands: [echo last]}]}}]}, "
      "taskRoles: {worker: {resourcePerInstance: {cpu: 1, memoryMB: 1}, commands: " +
          commands + "}}}",
      "job.yaml");
  return run_program(job.roles.at(0).command);
}

// A program that signals the shell, and then ends with CODE.
std::string stopped_program(const std::string& signal, const std::string& code) {
  return R"("sh -c 'kill -)" + signal + " $PPID; exit " + code + R"('")";
}

// The shell ignored the signal and went on, and the code of the last command, 0, said that the job was done.
TEST(RoleStopTest, no_further_command_runs_after_a_stop_request) {
  for (const std::string signal : {"USR1", "TERM"}) {
    for (const std::string code : {"75", "143", "1"}) {
      const ProgramResult ended = run_role("[" + stopped_program(signal, code) + ", touch /dev/null]");
      EXPECT_EQ(ended.exit_code, std::stoi(code)) << signal;
      EXPECT_EQ(ended.output, "first\n") << signal << ", " << code;
    }
  }
}

TEST(RoleStopTest, a_role_that_has_more_to_do_is_not_done) {
  const ProgramResult ended = run_role("[" + stopped_program("USR1", "0") + "]");
  EXPECT_EQ(ended.exit_code, 75) << "the plugin's and the deployment's commands have not run";
  EXPECT_EQ(ended.output, "first\n");
}

// Slurm signals one process after the other.
TEST(RoleStopTest, a_program_may_get_the_signal_before_the_shell) {
  const ProgramResult ended = run_role(R"(["sh -c '(sleep 0.1; kill -USR1 $PPID) & kill -USR1 $$'", echo next])");
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_EQ(ended.output, "first\n");
}

// A training stops by itself before Slurm's time limit.
TEST(RoleStopTest, a_program_that_stops_by_itself_ends_the_role) {
  for (const std::string commands :
       {R"(["sh -c 'exit 75'", echo next])", R"(["f() { sh -c 'exit 75'; echo next; }", f])"}) {
    const ProgramResult ended = run_role(commands);
    EXPECT_EQ(ended.exit_code, 75) << commands;
    EXPECT_EQ(ended.output, "first\n") << commands;
  }
  EXPECT_EQ(run_role(R"(["sh -c 'exit 75' || echo handled"])").output, "first\nhandled\npost\nlast\n");
  EXPECT_EQ(run_role(R"(["sleep 9 & kill $!; wait $!", echo next])").output, "first\nnext\npost\nlast\n");
}

TEST(RoleStopTest, a_stop_request_ends_loops_functions_and_lists) {
  const std::vector<std::string> all = {
      R"(["until sh -c 'kill -USR1 $PPID; exit 75'; do echo again; done"])",
      R"(["f() { sh -c 'kill -USR1 $PPID; exit 75'; echo again; }", f])",
      R"(["sh -c 'kill -USR1 $PPID; exit 75' || echo again"])",
      R"(["set -e", "for i in 1 2; do sh -c 'kill -USR1 $PPID; exit 75' || continue; done"])",
  };
  for (const std::string& commands : all) {
    const ProgramResult ended = run_role(commands);
    EXPECT_EQ(ended.exit_code, 75) << commands;
    EXPECT_EQ(ended.output, "first\n") << commands;
  }
}

// Slurm sends SIGTERM after a SIGUSR1. Both are pending when the program ends.
TEST(RoleStopTest, the_last_command_may_finish_in_spite_of_two_requests) {
  const JobFile job = parse_job_file(
      "{protocolVersion: 2, name: a, type: job, taskRoles: {worker: {resourcePerInstance: {cpu: 1, memoryMB: 1}, "
      R"(commands: ["sh -c 'kill -USR1 $PPID; kill -TERM $PPID; echo done'"]}}})",
      "job.yaml");
  const ProgramResult ended = run_program(job.roles.at(0).command);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.output, "done\n");
  EXPECT_EQ(ended.errors, "");
}

TEST(RoleStopTest, without_a_request_the_last_code_counts_and_nothing_else_is_printed) {
  const ProgramResult all = run_role(R"(["false", "echo own"])");
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(all.output, "first\nown\npost\nlast\n");
  const ProgramResult strict = run_role(R"(["set -ex", "sh -c 'exit 3'", "echo own"])");
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_EQ(strict.output, "first\n");
  EXPECT_EQ(strict.errors, "+ sh -c 'exit 3'\n");
}

TEST(RoleStopTest, a_trap_of_the_user_cleans_up) {
  const ProgramResult ended =
      run_role(R"(["trap 'echo removed; echo all' EXIT", )" + stopped_program("TERM", "75") + "]");
  EXPECT_EQ(ended.exit_code, 75);
  EXPECT_EQ(ended.output, "first\nremoved\nall\n");
}

}  // namespace lockstep::role_stop_test
